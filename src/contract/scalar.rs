//! The bounded scalars: texts and numbers whose values have passed the check of their schema.
//!
//! The build calls these macros, one a definition. A value is made by parsing ([`std::str::FromStr`] or `TryFrom`) and
//! cannot be changed afterwards, so that a function that takes it need not check again.

/// A bounded text.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Checks `value` and takes it.
            ///
            /// # Errors
            ///
            /// The rule that the text breaks; never the text.
            pub fn new(value: impl Into<String>) -> Result<Self, $crate::contract::check::Refused> {
                let value = value.into();
                $check.check_text(&value)?;
                Ok(Self(value))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl ::std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl ::std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::contract::check::Refused;

            fn from_str(value: &str) -> Result<Self, Self::Err> {
                Self::new(value)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = $crate::contract::check::Refused;

            fn try_from(value: &str) -> Result<Self, Self::Error> {
                Self::new(value)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::contract::check::Refused;

            fn try_from(value: String) -> Result<Self, Self::Error> {
                Self::new(value)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.0
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = $crate::contract::text::deserialize_quietly(deserializer, "a string", |text| {
                    Some(text.into_owned())
                })?;
                Self::new(value).map_err(::serde::de::Error::custom)
            }
        }
    };
}

/// What both kinds of bounded numbers have.
macro_rules! number_common {
    ($name:ident: $kind:ty) => {
        impl $name {
            /// The number.
            pub fn get(self) -> $kind {
                self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::contract::check::Refused;

            fn from_str(value: &str) -> Result<Self, Self::Err> {
                let value = value
                    .parse::<$kind>()
                    .map_err(|_| $crate::contract::check::Refused::new("", "must be a number"))?;
                Self::try_from(value)
            }
        }

        impl From<$name> for $kind {
            fn from(value: $name) -> $kind {
                value.0
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                let value = <$kind as ::serde::Deserialize>::deserialize(deserializer)?;
                Self::try_from(value).map_err(::serde::de::Error::custom)
            }
        }
    };
}

/// A bounded whole number.
macro_rules! integer {
    ($(#[$doc:meta])* $name:ident: $kind:ty, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($kind);

        impl TryFrom<$kind> for $name {
            type Error = $crate::contract::check::Refused;

            fn try_from(value: $kind) -> Result<Self, Self::Error> {
                // Every bound is a safe integer, so that a double holds it exactly; what is larger stays larger.
                $check.check_number(value as f64)?;
                Ok(Self(value))
            }
        }

        $crate::contract::scalar::number_common! { $name: $kind }
    };
}

/// A bounded number.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident: $kind:ty, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $name($kind);

        impl TryFrom<$kind> for $name {
            type Error = $crate::contract::check::Refused;

            fn try_from(value: $kind) -> Result<Self, Self::Error> {
                $check.check_number(value)?;
                Ok(Self(value))
            }
        }

        $crate::contract::scalar::number_common! { $name: $kind }
    };
}

/// The digest of one kind of thing, which does not pass for the digest of another.
macro_rules! typed_digest {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        ///
        /// A type of its own: the digest of something else does not pass for it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name($crate::contract::digest::Digest);

        impl $name {
            /// The digest of the canonical text of `material`.
            pub fn of(material: &::serde_json::Value) -> Self {
                Self($crate::contract::digest::Digest::of(material))
            }

            /// The 64 hexadecimal digits without the prefix.
            pub fn hex(&self) -> String {
                self.0.hex()
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::contract::check::Refused;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::contract::digest::Digest::parse(text).map(Self)
            }
        }

        impl From<$crate::contract::digest::Digest> for $name {
            /// Says what the digest is of; nothing proves it.
            fn from(digest: $crate::contract::digest::Digest) -> Self {
                Self(digest)
            }
        }

        impl From<$name> for $crate::contract::digest::Digest {
            fn from(digest: $name) -> Self {
                digest.0
            }
        }
    };
}

pub(crate) use {integer, number, number_common, text, typed_digest};

#[cfg(test)]
mod tests {
    use crate::contract::bounds::Identifier;
    use serde_json::{from_value, json};

    #[test]
    fn core_1_3_an_identifier_is_measured_in_utf16_and_trimmed_as_ecmascript() {
        for taken in ["a", "a b", "a\u{1}b", "\u{85}a", &"😀".repeat(256)] {
            let identifier = Identifier::new(taken).unwrap();
            assert_eq!(from_value::<Identifier>(json!(taken)).unwrap(), identifier);
        }
        for refused in ["", " a", "a\u{A0}", "\u{FEFF}a", "a\n", &"😀".repeat(257)] {
            assert!(Identifier::new(refused).is_err(), "{refused:?}");
            assert!(from_value::<Identifier>(json!(refused)).is_err());
        }
    }

    #[test]
    fn a_refused_text_is_not_echoed() {
        let mut all = Identifier::new("hunter2 ").unwrap_err().to_string();
        for value in [
            json!("hunter2 "),
            json!(987_654),
            json!(true),
            json!(["hunter2"]),
        ] {
            let refused = from_value::<Identifier>(value).unwrap_err();
            all.push_str(&format!(" {refused}"));
        }
        for leak in ["hunter2", "987654", "true"] {
            assert!(!all.contains(leak), "{all}");
        }
    }
}
