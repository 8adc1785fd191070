//! YAML as it is printed.

/// Serializes a value as YAML.
pub fn to_yaml(value: &impl serde::Serialize) -> anyhow::Result<String> {
    serde_saphyr::to_string(value).map_err(|error| anyhow::anyhow!("failed to write YAML: {error}"))
}
