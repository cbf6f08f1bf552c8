//! Where a profile holds payload: decided by position from the profile's root, never by the name of a key.

use super::path::Place;

/// What kind of payload a position holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// The content of a mounted file.
    File,
    /// The content of a tool, skill, agent or command, or the instructions.
    Inline,
}

/// How a place of the walk stands to the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope<'w> {
    /// Not on the way to any payload.
    Outside,
    /// The profile lies under these keys.
    Above(&'w [&'w str]),
    Profile,
    Resources,
    Files,
    Mount,
    Inlines,
    Resource(Payload),
    /// The instructions, which are a string or a resource.
    Instructions,
    Content(Payload),
}

impl<'w> Scope<'w> {
    /// The scope of the root of a value whose profile lies under the keys `location`.
    pub(super) fn profile_under(location: &'w [&'w str]) -> Self {
        match location {
            [] => Self::Profile,
            keys => Self::Above(keys),
        }
    }

    /// The scope of a child.
    pub(super) fn child(self, place: Place<'_>) -> Self {
        match (self, place) {
            (Self::Above([first, rest @ ..]), Place::Key(key)) if key == *first => {
                Self::profile_under(rest)
            }
            (Self::Profile, Place::Key("resources")) => Self::Resources,
            (Self::Resources, Place::Key("files")) => Self::Files,
            (Self::Resources, Place::Key("instructions")) => Self::Instructions,
            (Self::Resources, Place::Key("tools" | "skills" | "agents" | "commands")) => {
                Self::Inlines
            }
            (Self::Files, Place::Index(_)) => Self::Mount,
            (Self::Mount, Place::Key("resource")) => Self::Resource(Payload::File),
            (Self::Inlines, Place::Index(_)) => Self::Resource(Payload::Inline),
            (Self::Resource(payload), Place::Key("content")) => Self::Content(payload),
            (Self::Instructions, Place::Key("content")) => Self::Content(Payload::Inline),
            _ => Self::Outside,
        }
    }

    /// The kind of payload that a string in this place is, if any.
    pub(super) fn payload(self) -> Option<Payload> {
        match self {
            Self::Content(payload) => Some(payload),
            Self::Instructions => Some(Payload::Inline),
            _ => None,
        }
    }
}
