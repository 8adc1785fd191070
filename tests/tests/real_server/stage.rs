//! The stage itself, before anyone plays on it.

use acceptance::control_plane::shared;
use anyhow::Result;

#[tokio::test]
async fn a_control_plane_comes_up() -> Result<()> {
    let plane = shared().await?;
    let version = plane.kubectl(&["version", "-o", "json"])?;
    assert!(version.contains("v1.36.3"), "{version}");
    Ok(())
}
