//! Whether code of users runs in a process.

use super::{Environment, Reader};

/// Whether tasks that run code of users, such as `bash` and `python`, are executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserCode {
    /// `allow`: their programs run, contained.
    Allow,
    /// `deny`: their attempts fail at once, and say what to use instead.
    Deny,
}

impl UserCode {
    /// The setting `EBB_USER_CODE`, or what is wrong with it.
    pub fn from_env(environment: &Environment, default: Self) -> Result<Self, String> {
        match environment.get("EBB_USER_CODE") {
            None => Ok(default),
            Some("allow") => Ok(Self::Allow),
            Some("deny") => Ok(Self::Deny),
            Some(other) => Err(format!("EBB_USER_CODE is `{other}`; expected allow or deny")),
        }
    }
}

impl Reader<'_> {
    pub(super) fn user_code(&mut self, default: UserCode) -> UserCode {
        UserCode::from_env(self.environment, default).unwrap_or_else(|problem| {
            self.problems.push(problem);
            default
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_overrides_the_default_and_is_refused_by_name() {
        let read = |value: &str| {
            UserCode::from_env(&[("EBB_USER_CODE", value)].into_iter().collect(), UserCode::Deny)
        };
        assert_eq!(
            (read("allow"), read("deny"), read("")),
            (Ok(UserCode::Allow), Ok(UserCode::Deny), Ok(UserCode::Deny))
        );
        assert!(read("yes").unwrap_err().contains("expected allow or deny"));
    }
}
