//! What `deploy/release/run` packs, with the program that was built for the tests in place of those of a release. `tests/run
//! --full` builds a release.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::oci_registry::OciRegistry;
use acceptance::places;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::chart::{HOME, helm};

const VERSION: &str = "9.8.7";
const CERTIFICATES: &str = "the authorities that are trusted\n";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Where the header of a program names its machine, and the number of arm64.
const ELF_MACHINE: usize = 18;
const ARM64: u8 = 183;

fn ended_well(output: &Output, what: &str) -> Result<String> {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{what}: {said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(said)
}

fn part(name: &str) -> PathBuf {
    places::repository().join("deploy/release").join(name)
}

fn read_json(file: &Path) -> Result<Value> {
    serde_json::from_slice(&fs::read(file)?).with_context(|| file.display().to_string())
}

/// The program under test without its symbols, and one that says of itself to be for arm64, in a folder.
fn programs(folder: &Path) -> Result<[PathBuf; 2]> {
    let [amd64, arm64] = ["amd64", "arm64"].map(|arch| folder.join(arch));
    let stripped = Command::new("strip").arg("-o").arg(&amd64).arg(places::rollcall()?).output()?;
    ended_well(&stripped, "strip")?;
    let mut other = fs::read("/bin/true")?;
    other[ELF_MACHINE] = ARM64;
    fs::write(&arm64, other)?;
    Ok([amd64, arm64])
}

/// Packs these programs; returns the folder.
fn pack(folder: &Path, [amd64, arm64]: &[PathBuf; 2], name: &str) -> Result<PathBuf> {
    let to = folder.join(name);
    fs::write(folder.join("certificates"), CERTIFICATES)?;
    let mut run = Command::new(part("run"));
    run.args(["--version", &format!("v{VERSION}"), "--url", "https://example.com/download"]);
    run.args(["--image", "registry.example.com/somebody/rollcall", "--to"]).arg(&to);
    run.arg("--binary").arg(format!("amd64={}", amd64.display()));
    run.arg("--binary").arg(format!("arm64={}", arm64.display()));
    run.arg("--certificates").arg(folder.join("certificates")).env("SOURCE_DATE_EPOCH", "1700000000");
    ended_well(&run.output()?, "deploy/release/run")?;
    Ok(to)
}

/// A release that was packed once for all tests.
fn packed() -> Result<&'static Path> {
    static PACKED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let packed = PACKED.get_or_init(|| {
        let folder = places::run_folder().map_err(|error| error.to_string())?.join("release");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        programs(&folder).and_then(|both| pack(&folder, &both, "once")).map_err(|error| format!("{error:#}"))
    });
    packed.as_deref().map_err(|error| anyhow::anyhow!(error.clone()))
}

/// A blob of a layout, whose content is what its descriptor says.
fn blob(layout: &Path, descriptor: &Value) -> Result<PathBuf> {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    let digest = digest.with_context(|| format!("no digest: {descriptor}"))?;
    let file = layout.join("blobs/sha256").join(digest);
    ensure!(fs::metadata(&file)?.len() == descriptor["size"].as_u64().context("a size")?, "{descriptor}");
    let said = ended_well(&Command::new("sha256sum").arg(&file).output()?, "sha256sum")?;
    ensure!(said.starts_with(digest), "{} is not what it says to be", file.display());
    Ok(file)
}

/// The files of an archive, each with its rights, owner, size and date, as tar lists them.
fn listed(archive: &Path) -> Result<Vec<String>> {
    let said = Command::new("tar").args(["--numeric-owner", "--utc", "-tvzf"]).arg(archive).output()?;
    Ok(ended_well(&said, "tar")?
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[test]
fn the_image_has_a_platform_each_with_the_program_and_certificates_and_nobodys_rights() -> Result<()> {
    let layout = packed()?.join("image");
    assert_eq!(read_json(&layout.join("oci-layout"))?, json!({ "imageLayoutVersion": "1.0.0" }));
    let top = read_json(&layout.join("index.json"))?;
    let named = &top["manifests"][0];
    assert_eq!(named["annotations"]["org.opencontainers.image.ref.name"], VERSION);
    assert_eq!(named["mediaType"], INDEX);
    let index = read_json(&blob(&layout, named)?)?;
    let dockerfile = fs::read_to_string(places::repository().join("deploy/Dockerfile"))?;
    let last = dockerfile.split("FROM scratch").nth(1).context("an image from nothing")?;
    let word =
        |key: &str| last.lines().find_map(|line| line.strip_prefix(key)).map(str::trim).unwrap_or_default();
    let mut platforms = Vec::new();
    for manifest in list(&index["manifests"]) {
        let platform = manifest["platform"]["architecture"].as_str().context("a platform")?;
        platforms.push(platform.to_owned());
        let manifest = read_json(&blob(&layout, manifest)?)?;
        let config = read_json(&blob(&layout, &manifest["config"])?)?;
        assert_eq!(config["architecture"], platform);
        // What the Dockerfile says.
        let own = &config["config"];
        assert_eq!(own["User"], word("USER"));
        assert_eq!(own["Entrypoint"], serde_json::from_str::<Value>(word("ENTRYPOINT"))?);
        assert_eq!(own["Cmd"], serde_json::from_str::<Value>(word("CMD"))?);
        assert_eq!(list(&own["Env"]), word("ENV").split(' ').map(Value::from).collect::<Vec<_>>());
        let ports: Vec<_> = word("EXPOSE").split(' ').map(|port| format!("{port}/tcp")).collect();
        assert_eq!(
            own["ExposedPorts"].as_object().context("ports")?.keys().collect::<Vec<_>>(),
            ports.iter().collect::<Vec<_>>()
        );
        let layers: Vec<_> =
            list(&manifest["layers"]).iter().map(|layer| blob(&layout, layer)).collect::<Result<_>>()?;
        assert_eq!(list(&config["rootfs"]["diff_ids"]).len(), layers.len());
        for (layer, diff) in layers.iter().zip(list(&config["rootfs"]["diff_ids"])) {
            let plain =
                Command::new("sh").args(["-c", "gunzip -c <\"$0\" | sha256sum"]).arg(layer).output()?;
            let plain = ended_well(&plain, "sha256sum")?;
            assert_eq!(diff.as_str().and_then(|diff| diff.strip_prefix("sha256:")), plain.split(' ').next());
        }
        let files = layers.iter().map(|layer| listed(layer)).collect::<Result<Vec<_>>>()?.concat();
        assert!(
            files.iter().all(|file| file.contains(" 0/0 ") && file.contains(" 2023-11-14 22:13 ")),
            "{files:?}"
        );
        let files: Vec<_> = files.iter().filter(|file| !file.starts_with('d')).collect();
        assert!(
            files[0].starts_with("-rw-r--r--") && files[0].ends_with(" etc/ssl/certs/ca-certificates.crt"),
            "{files:?}"
        );
        assert!(files[1].starts_with("-rwxr-xr-x") && files[1].ends_with(" rollcall"), "{files:?}");
        assert_eq!(files.len(), 2, "{files:?}");
    }
    assert_eq!(platforms, ["amd64", "arm64"]);
    let digest = fs::read_to_string(packed()?.join("image.digest"))?;
    assert_eq!(named["digest"], digest.trim());
    Ok(())
}

#[test]
fn each_archive_has_the_program_with_its_manual_its_completions_and_its_licence() -> Result<()> {
    let folder = packed()?;
    for arch in ["amd64", "arm64"] {
        let name = format!("rollcall-{VERSION}-linux-{arch}");
        let files = listed(&folder.join(format!("{name}.tar.gz")))?;
        let has = |file: &str| files.iter().any(|line| line.ends_with(&format!(" {name}/{file}")));
        for file in [
            "rollcall",
            "LICENSE",
            "README.md",
            "CHANGELOG.md",
            "man/man1/rollcall.1",
            "man/man1/rollcall-tree.1",
        ] {
            assert!(has(file), "{file} is not in {files:?}");
        }
        for shell in ["rollcall.bash", "_rollcall", "rollcall.fish", "kubectl_complete-rollcall"] {
            assert!(has(&format!("completions/{shell}")), "{shell} is not in {files:?}");
        }
        assert!(files.iter().any(|line| line.starts_with("-rwxr-xr-x") && line.ends_with("/rollcall")));
    }
    // Unpacked, the program runs, and the checksums hold.
    let archive = folder.join(format!("rollcall-{VERSION}-linux-amd64.tar.gz"));
    let there = folder.with_file_name("unpacked");
    fs::create_dir_all(&there)?;
    ended_well(&Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&there).output()?, "tar")?;
    let program = there.join(format!("rollcall-{VERSION}-linux-amd64/rollcall"));
    assert_eq!(fs::metadata(&program)?.permissions().mode() & 0o777, 0o755);
    let said =
        ended_well(&Command::new(&program).args(["version", "--output", "json"]).output()?, "version")?;
    assert!(serde_json::from_str::<Value>(&said)?["version"].is_string());
    let mut sums = Command::new("sha256sum");
    ended_well(&sums.args(["--strict", "-c", "SHA256SUMS"]).current_dir(folder).output()?, "SHA256SUMS")?;
    Ok(())
}

#[test]
fn krew_is_told_where_each_archive_is_and_what_it_must_be() -> Result<()> {
    let folder = packed()?;
    let plugin: Value = serde_saphyr::from_str(&fs::read_to_string(folder.join("rollcall.yaml"))?)?;
    assert_eq!((&plugin["kind"], &plugin["metadata"]["name"]), (&json!("Plugin"), &json!("rollcall")));
    assert_eq!(plugin["spec"]["version"], format!("v{VERSION}"));
    let sums = fs::read_to_string(folder.join("SHA256SUMS"))?;
    let platforms = list(&plugin["spec"]["platforms"]);
    assert_eq!(platforms.len(), 2);
    for platform in platforms {
        let uri = platform["uri"].as_str().context("a uri")?;
        let name = uri.strip_prefix("https://example.com/download/").context("a name")?;
        let arch = platform["selector"]["matchLabels"]["arch"].as_str().context("an architecture")?;
        assert!(name.ends_with(&format!("-linux-{arch}.tar.gz")), "{uri}");
        assert!(
            sums.contains(&format!("{}  {name}\n", platform["sha256"].as_str().context("a digest")?)),
            "{sums}"
        );
        assert_eq!(platform["bin"], "rollcall");
    }
    Ok(())
}

#[test]
fn the_same_commit_packs_the_same_bytes() -> Result<()> {
    let once = packed()?;
    let folder = once.parent().context("a folder")?;
    let again = pack(folder, &["amd64", "arm64"].map(|arch| folder.join(arch)), "again")?;
    for file in
        ["SHA256SUMS", "image.digest", "chart.digest", "image/index.json", "chart/index.json", "notes.md"]
    {
        assert_eq!(fs::read_to_string(once.join(file))?, fs::read_to_string(again.join(file))?, "{file}");
    }
    Ok(())
}

#[test]
fn a_program_for_another_machine_or_one_that_is_not_static_is_refused() -> Result<()> {
    let folder = places::run_folder()?.join("release-check");
    fs::create_dir_all(&folder)?;
    let [amd64, arm64] = programs(&folder)?;
    let check = |args: &[&str], file: &Path| -> Result<(bool, String)> {
        let said = Command::new(part("check_program.py")).args(args).arg(file).output()?;
        Ok((
            said.status.success(),
            String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned(),
        ))
    };
    let (good, said) = check(&["amd64"], &arm64)?;
    assert!(!good && said.contains("is for arm64, and not for amd64"), "{said}");
    let (good, said) = check(&["--static", "amd64"], &amd64)?;
    assert!(!good && said.contains("is not static: it is loaded by /lib"), "{said}");
    assert!(check(&["amd64"], &amd64)?.0);
    let source = folder.join("main.c");
    fs::write(&source, "int main(void) { return 0; }\n")?;
    fs::write(folder.join("text"), "no program\n")?;
    let small = folder.join("small");
    ended_well(&Command::new("gcc").arg("-static").arg("-o").arg(&small).arg(&source).output()?, "gcc")?;
    assert_eq!(check(&["--static", "amd64"], &small)?, (true, "amd64: static\n".to_owned()));
    assert!(check(&["--static", "amd64"], &folder.join("text"))?.1.contains("no program"));
    Ok(())
}

#[test]
fn a_version_that_is_none_is_refused_before_anything_is_built() -> Result<()> {
    for version in ["latest", "1.2", "v1.2.3_4"] {
        let said = Command::new(part("run")).args(["--version", version]).output()?;
        assert_eq!(said.status.code(), Some(2), "{version}");
        assert!(
            String::from_utf8_lossy(&said.stderr).contains("is no version: write it as v1.2.3"),
            "{version}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_chart_of_the_release_is_installed_from_a_registry() -> Result<()> {
    let folder = packed()?;
    let registry = OciRegistry::serve_layout(folder.join("chart")).await?;
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let kubeconfig = plane.kubeconfig().to_string_lossy().into_owned();
    let chart = format!("oci://{}/charts/rollcall", registry.address);
    let args = ["install", "rollcall", &chart, "--version", VERSION, "--plain-http", "-n", HOME];
    let args =
        [&args[..], &["--create-namespace", "--set", "dashboards.enabled=true", "--kubeconfig", &kubeconfig]]
            .concat();
    // The registry answers from this runtime.
    let words: Vec<String> = args.iter().map(ToString::to_string).collect();
    let installed =
        tokio::task::spawn_blocking(move || helm(&words.iter().map(String::as_str).collect::<Vec<_>>()));
    ended_well(&installed.await??, "helm install")?;
    let get = |what: &str| -> Result<Value> {
        Ok(serde_json::from_str(&plane.kubectl(&["get", what, "-n", HOME, "-o", "json"])?)?)
    };
    let deployment = get("deployment/rollcall")?;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, format!("registry.example.com/somebody/rollcall:{VERSION}"));
    assert_eq!(deployment["metadata"]["labels"]["app.kubernetes.io/version"], VERSION);
    // What the chart in the repository links to is packed with its content.
    assert_eq!(get("crd/readinesspolicies.rollcall.dev")?["spec"]["group"], "rollcall.dev");
    let boards = get("configmap")?;
    let names: BTreeSet<_> = list(&boards["items"])
        .iter()
        .flat_map(|map| map["data"].as_object().into_iter().flat_map(|data| data.keys().cloned()))
        .collect();
    assert!(names.contains("fleet.json"), "{names:?}");
    Ok(())
}
