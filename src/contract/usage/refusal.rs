//! What makes the usage of a record or a step unreadable.

use std::borrow::Cow;

use crate::contract::bounds::BoundError;

/// Usage that is there and cannot be read. It ends the stream: a total that silently missed a part would look like a
/// measurement. A repeat of the call cannot help.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `usage`, or `tokenUsage` without it, is no object. Usual cause: a service that sends `null` for what it does not
    /// know.
    #[error("{path}: must be an object")]
    UsageShape {
        /// Where, as a JSON pointer.
        path: &'static str,
    },
    /// A count, in any of its spellings, is no whole number from 0 to 2^53 - 1. A spelling that another one outranks is
    /// checked too.
    #[error("{path}: must be a whole number from 0 to 2^53 - 1")]
    UsageCount {
        /// Where, as a JSON pointer.
        path: String,
    },
    /// A cost, in any of its spellings, is no finite number from 0.
    #[error("{path}: must be a finite number, not negative")]
    Cost {
        /// Where, as a JSON pointer.
        path: String,
    },
    /// The usage object is larger than control-plane JSON may be.
    #[error("{error}")]
    MetadataBound {
        /// Where the usage object is, as a JSON pointer.
        path: &'static str,
        /// What is larger, and where in that object.
        error: BoundError,
    },
    /// The tokens of a step, or their cache, are no object.
    #[error("{path}: must be an object")]
    StepShape {
        /// Where in the step, as a JSON pointer.
        path: &'static str,
    },
    /// A count of a step is no whole number from 0 to 2^53 - 1.
    #[error("{path}: must be a whole number from 0 to 2^53 - 1")]
    StepCount {
        /// Where in the step, as a JSON pointer.
        path: String,
    },
    /// A running total passes 2^53 - 1.
    #[error("the running total of `{field}` passes 2^53 - 1")]
    Overflow {
        /// The field of the total.
        field: &'static str,
    },
}

impl Refusal {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UsageShape { .. } => "usage-shape",
            Self::UsageCount { .. } => "usage-count",
            Self::Cost { .. } => "cost",
            Self::MetadataBound { .. } => "metadata-bound",
            Self::StepShape { .. } => "step-shape",
            Self::StepCount { .. } => "step-count",
            Self::Overflow { .. } => "overflow",
        }
    }

    /// Where in the data of the record or the step: a JSON pointer, empty where no one place is at fault.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::UsageShape { path } | Self::StepShape { path } => (*path).into(),
            Self::UsageCount { path } | Self::Cost { path } | Self::StepCount { path } => {
                path.as_str().into()
            }
            Self::MetadataBound { path, error } => {
                format!("{path}{}", error.violation().pointer()).into()
            }
            Self::Overflow { .. } => "".into(),
        }
    }
}
