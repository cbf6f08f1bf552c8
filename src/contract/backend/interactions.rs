//! Which kinds of asks a caller answers (core contracts, 6).

use std::collections::BTreeMap;

use crate::contract::types::{BackendInteractions, InteractionKind, RequestedInteractions};

/// The kinds that need no dot.
const WELL_KNOWN: [&str; 3] = ["permission", "question", "plan"];

impl RequestedInteractions {
    /// The posture of a caller who answers nothing in this turn; not the same as none at all, with which the provider decides.
    pub fn none() -> Self {
        BTreeMap::new().into()
    }

    /// The same posture with this kind answered, or not.
    ///
    /// ```
    /// use tangle_sandbox::contract::types::RequestedInteractions;
    ///
    /// let kinds = RequestedInteractions::none().with("question".parse()?, true);
    /// assert!(kinds.answers("question") && !kinds.answers("plan"));
    /// # Ok::<(), tangle_sandbox::contract::check::Refused>(())
    /// ```
    #[must_use]
    pub fn with(self, kind: InteractionKind, answered: bool) -> Self {
        let mut kinds: BTreeMap<String, bool> = self.into();
        kinds.insert(kind.into(), answered);
        kinds.into()
    }

    /// Whether the caller answers asks of this kind; one that is not named is not answered.
    pub fn answers(&self, kind: &str) -> bool {
        self.get(kind) == Some(&true)
    }

    /// Whether a backend block says the same of the three well-known kinds.
    pub fn agrees_with(&self, block: &BackendInteractions) -> bool {
        let BackendInteractions {
            permission,
            question,
            plan,
        } = block;
        WELL_KNOWN
            .into_iter()
            .zip([permission, question, plan])
            .all(|(kind, given)| self.answers(kind) == (*given == Some(true)))
    }
}

impl From<BackendInteractions> for RequestedInteractions {
    fn from(block: BackendInteractions) -> Self {
        let BackendInteractions {
            permission,
            question,
            plan,
        } = block;
        let kinds = WELL_KNOWN.into_iter().zip([permission, question, plan]);
        kinds
            .filter_map(|(kind, given)| Some((kind.to_owned(), given?)))
            .collect::<BTreeMap<_, _>>()
            .into()
    }
}

/// The rule of a kind: well-known, or with dots inside and none of them at an end or beside another.
pub(crate) fn interaction_kind(kind: &str) -> Result<(), &'static str> {
    let namespaced = || kind.contains('.') && kind.split('.').all(|part| !part.is_empty());
    if WELL_KNOWN.contains(&kind) || namespaced() {
        Ok(())
    } else {
        Err("must be permission, question, plan or have a dot inside")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_6_a_kind_is_well_known_or_has_dots_inside() {
        for kind in [
            "permission",
            "question",
            "plan",
            "acme.review",
            "a.b.c",
            "a. .b",
        ] {
            assert!(InteractionKind::new(kind).is_ok(), "{kind}");
        }
        for kind in [
            "",
            "custom",
            ".a",
            "a.",
            ".",
            "a..b",
            " a.b",
            "Plan",
            "permission.",
        ] {
            assert!(InteractionKind::new(kind).is_err(), "{kind}");
        }
    }

    #[test]
    fn core_6_postures_agree_over_the_well_known_kinds_and_absent_is_false() {
        let turn = |kinds: &[(&str, bool)]| {
            kinds
                .iter()
                .fold(RequestedInteractions::none(), |turn, (kind, answered)| {
                    turn.with(kind.parse().unwrap(), *answered)
                })
        };
        let block = BackendInteractions {
            permission: None,
            question: Some(true),
            plan: Some(false),
        };
        assert!(turn(&[("question", true)]).agrees_with(&block));
        assert!(turn(&[("question", true), ("a.b", true)]).agrees_with(&block));
        assert!(!turn(&[("permission", true)]).agrees_with(&block));
        assert!(!turn(&[]).agrees_with(&block));
        assert!(turn(&[]).agrees_with(&BackendInteractions::default()));
        let asked = RequestedInteractions::from(block);
        assert_eq!(asked, turn(&[("question", true), ("plan", false)]));
    }
}
