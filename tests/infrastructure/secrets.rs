//! The secrets of functions and workflows.

use super::reading::{Repository, attributes, definitions, inside};
use super::{Names, compare};

/// The URL of the database is a secret, and the secrets of workflows have the names that the code expects.
pub(crate) fn secrets(repository: &Repository) -> Vec<String> {
    let mut found = Vec::new();
    for file in ["terraform/functions.tf", "terraform/migrate.tf"] {
        let given = repository.file(file).split("name = \"DATABASE_URL\"").nth(1).unwrap_or_default();
        let source = inside(given, "secret_key_ref {");
        if !source.contains("google_secret_manager_secret.database_url.secret_id") {
            found.push(format!("{file} does not give DATABASE_URL from its secret"));
        }
    }
    let variable = repository.file("shared/host/src/secrets/variable.rs");
    let coded = [
        "PREFIX: &str = \"EBB_SECRET_\"",
        "SEPARATOR: &str = \"__\"",
        "name.to_ascii_uppercase().replace('-', \"_\")",
    ];
    let upper = |name: &str| format!("${{upper(replace({name}, \"-\", \"_\"))}}");
    let made = format!(
        "\"EBB_SECRET_{}__{}\" => \"${{var.name}}_${{tenant}}_${{name}}\"",
        upper("tenant"),
        upper("name")
    );
    if !coded.iter().all(|part| variable.contains(part))
        || !repository.file("terraform/functions.tf").contains(&made)
    {
        found.push("terraform and the code name the secrets of workflows differently".into());
    }
    let declared = inside(repository.file("terraform/variables.tf"), "variable \"workflow_secrets\" {");
    for pattern in [model::TenantName::PATTERN, model::SecretName::PATTERN] {
        if !declared.contains(&format!("\"^{pattern}$\"")) {
            found.push(format!("secrets: terraform/variables.tf has another rule than {pattern}"));
        }
    }
    if !repository
        .file("migrations/0001_tenants_and_identities.sql")
        .contains(&format!("'^{}$'", model::TenantName::PATTERN))
    {
        found.push("the database has another rule for the names of tenants".into());
    }
    let readers: Names = repository
        .code("functions/")
        .filter(|(_, text)| reads_secrets(text))
        .filter_map(|(path, _)| path.split('/').nth(1).map(str::to_owned))
        .collect();
    let given = attributes(inside(repository.file("terraform/functions.tf"), "secrets_by_function = {"));
    let given: Names = given
        .into_iter()
        .chain(
            readers
                .iter()
                .filter(|name| {
                    inside(repository.file("terraform/functions.tf"), "secrets_by_function = {")
                        .contains(&format!(" {name} = "))
                })
                .cloned(),
        )
        .collect();
    found.extend(compare(
        "functions that read secrets of workflows",
        ("functions/", readers),
        ("terraform/functions.tf", given),
    ));
    if !repository
        .file("terraform/secrets.tf")
        .contains("contains(keys(local.secrets_by_function), function.function)")
    {
        found.push("terraform/secrets.tf does not let functions read the secrets of workflows".into());
    }
    let made = definitions(&repository.terraform(), "resource \"google_secret_manager_secret\" ");
    let used = made.iter().filter(|(name, _)| {
        repository
            .file("terraform/functions.tf")
            .contains(&format!("google_secret_manager_secret.{name}.secret_id"))
    });
    if used.count() != made.len() {
        found.push("a secret is created that no function reads".into());
    }
    found
}

/// Whether a function reads the secrets of workflows: itself, or for leases, which the API gives to remote workers.
pub(crate) fn reads_secrets(text: &str) -> bool {
    text.contains("config.secrets") || text.contains("Api::configured(")
}
