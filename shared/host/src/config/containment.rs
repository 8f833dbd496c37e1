//! Whether and how the programs of tasks are contained.

use std::path::PathBuf;

use model::NetworkAccess;

use super::Environment;

/// How a worker keeps the programs of its tasks apart from itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainmentConfig {
    /// `EBB_CONTAINMENT`: `on` (the default) or `off`.
    pub is_on: bool,
    /// `EBB_TASK_NETWORK`: what programs may reach at most, `shared` (the default) or `none`.
    pub network: NetworkAccess,
    /// `EBB_TASK_READABLE`: folders that programs may read besides the system's, separated by `:`.
    pub readable: Vec<PathBuf>,
    /// `EBB_TASK_WRITABLE`: folders that programs may change besides their own, separated by `:`.
    pub writable: Vec<PathBuf>,
}

impl Default for ContainmentConfig {
    fn default() -> Self {
        Self { is_on: true, network: NetworkAccess::Shared, readable: Vec::new(), writable: Vec::new() }
    }
}

impl ContainmentConfig {
    /// The settings, or what is wrong with them.
    pub fn from_env(environment: &Environment) -> Result<Self, String> {
        let is_on = match environment.get("EBB_CONTAINMENT") {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => return Err(format!("EBB_CONTAINMENT is `{other}`; expected on or off")),
        };
        let network = match environment.get("EBB_TASK_NETWORK") {
            None | Some("shared") => NetworkAccess::Shared,
            Some("none") if is_on => NetworkAccess::None,
            Some("none") => {
                return Err("EBB_TASK_NETWORK is `none`, which needs EBB_CONTAINMENT to be on".to_owned());
            }
            Some(other) => return Err(format!("EBB_TASK_NETWORK is `{other}`; expected shared or none")),
        };
        let folders = |name| {
            let paths: Vec<PathBuf> =
                environment.get(name).map(|paths| std::env::split_paths(paths).collect()).unwrap_or_default();
            match paths.iter().find(|path| !path.is_absolute()) {
                Some(relative) => Err(format!(
                    "{name} contains `{}`, which is not an absolute path; separate folders with `:`",
                    relative.display()
                )),
                None => Ok(paths),
            }
        };
        let (readable, writable) = (folders("EBB_TASK_READABLE")?, folders("EBB_TASK_WRITABLE")?);
        Ok(Self { is_on, network, readable, writable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused_by_name() {
        let read =
            |variables: &[(&str, &str)]| ContainmentConfig::from_env(&variables.iter().copied().collect());
        assert_eq!(read(&[]), Ok(ContainmentConfig::default()));
        let found = read(&[("EBB_CONTAINMENT", "off"), ("EBB_TASK_WRITABLE", "/data:/models")]).unwrap();
        assert_eq!((found.is_on, found.writable), (false, vec!["/data".into(), "/models".into()]));
        assert_eq!(read(&[("EBB_TASK_NETWORK", "none")]).unwrap().network, NetworkAccess::None);
        assert!(read(&[("EBB_TASK_NETWORK", "internal")]).unwrap_err().contains("expected shared or none"));
        let contradiction = read(&[("EBB_TASK_NETWORK", "none"), ("EBB_CONTAINMENT", "off")]);
        assert!(contradiction.unwrap_err().contains("needs EBB_CONTAINMENT"));
        assert!(read(&[("EBB_CONTAINMENT", "maybe")]).unwrap_err().contains("expected on or off"));
        assert!(read(&[("EBB_TASK_READABLE", "data")]).unwrap_err().contains("absolute"));
    }
}
