//! How a program describes its own failure: the file `EBB_FAILURE`.

use model::{ErrorClass, Failure, json_error};
use serde::Deserialize;
use serde_json::Value;

/// The maximum size of the file.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// The maximum length of the message, in characters.
const MAX_MESSAGE_LENGTH: usize = 2_000;

/// The content of the file; each part is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    class: Option<String>,
    message: Option<String>,
    detail: Option<Value>,
}

impl Description {
    /// What the file says; otherwise what is wrong with it, for the attempt's log.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let described: Self = serde_json::from_slice(bytes).map_err(|error| {
            let why = json_error::in_words(&error);
            format!("the file EBB_FAILURE is ignored: it is not of the form {{\"class\": …, \"message\": …, \"detail\": …}}: {why}")
        })?;
        match described.class.as_deref() {
            Some(class) if described.class().is_none() => Err(format!(
                "the file EBB_FAILURE is ignored: its class is `{class}`; expected one of {}",
                ErrorClass::OF_PROGRAMS.map(ErrorClass::name).join(", ")
            )),
            _ => Ok(described),
        }
    }

    fn class(&self) -> Option<ErrorClass> {
        let class = self.class.as_deref().and_then(ErrorClass::named);
        class.filter(|class| ErrorClass::OF_PROGRAMS.contains(class))
    }

    /// The failure that the exit status shows, as the program describes it. Its exit code and signal stay.
    pub(super) fn over(self, failure: Failure) -> Failure {
        Failure {
            class: self.class().unwrap_or(failure.class),
            message: self
                .message
                .map_or(failure.message, |message| message.chars().take(MAX_MESSAGE_LENGTH).collect()),
            detail: self.detail,
            ..failure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_describes_its_failure() {
        let exit = Failure { exit_code: Some(3), ..Failure::of_program("exited with code 3") };
        let described = Description::parse(
            br#"{"class": "permanent", "message": "no such table", "detail": {"table": "a"}}"#,
        );
        let failure = described.unwrap().over(exit.clone());
        assert_eq!((failure.class, failure.exit_code), (ErrorClass::Permanent, Some(3)));
        assert_eq!(
            (&*failure.message, failure.detail),
            ("no such table", Some(serde_json::json!({"table": "a"})))
        );
        assert_eq!(Description::parse(b"{}").unwrap().over(exit.clone()), exit);
    }

    #[test]
    fn only_a_class_that_programs_may_set_is_accepted() {
        let refused = Description::parse(br#"{"class": "worker_lost"}"#).unwrap_err();
        assert!(refused.ends_with("expected one of program_failed, transient, permanent"), "{refused}");
        assert!(Description::parse(b"oops").unwrap_err().contains("is ignored: it is not of the form"));
        assert!(Description::parse(br#"{"klass": "permanent"}"#).unwrap_err().contains("klass"));
        let number = Description::parse(b"7").unwrap_err();
        assert!(number.contains("integer `7` where an object is expected"), "{number}");
    }
}
