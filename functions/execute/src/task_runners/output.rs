//! The size limit of outputs.

use serde_json::Value;

use model::Failure;

/// The maximum size of an output, in bytes of JSON.
pub(crate) const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The output, if it is within the limit.
pub(super) fn check(output: Value) -> Result<Value, Failure> {
    let size = output.to_string().len();
    if size > MAX_OUTPUT_BYTES {
        return Err(too_large(size as u64));
    }
    Ok(output)
}

/// The failure of an output that is too large.
pub(crate) fn too_large(size: u64) -> Failure {
    Failure::permanent(format!(
        "the output has {size} bytes of JSON, more than the limit of {MAX_OUTPUT_BYTES} (1 MiB): store it elsewhere, in \
         a bucket or a table, and pass a reference to it"
    ))
}
