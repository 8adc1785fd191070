//! Client certificates, issued by a control plane's own authority.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Configuration of `openssl ca`; all its files are in its working folder.
const CONFIG: &str = "
[ca]
default_ca = it
[it]
database = index.txt
serial = serial
new_certs_dir = .
default_md = default
policy = names
unique_subject = no
x509_extensions = of_clients
[names]
commonName = supplied
[of_clients]
extendedKeyUsage = clientAuth
";

/// Creates the authority that the API server trusts: `ca.pem` and `ca.key`.
pub(crate) fn authority(folder: &Path) -> Result<()> {
    fs::write(folder.join("ca.conf"), CONFIG)?;
    fs::write(folder.join("index.txt"), "")?;
    fs::write(folder.join("serial"), "01\n")?;
    let args =
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=authority";
    openssl(folder, &[args, "-keyout ca.key -out ca.pem"].join(" "))
}

/// Issues a client's certificate and key, valid from a while ago until the given time.
pub(crate) fn client(folder: &Path, name: &str, until: &str) -> Result<(PathBuf, PathBuf)> {
    openssl(
        folder,
        &format!(
            "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        ),
    )?;
    let times = format!("-startdate 20250101000000Z -enddate {until}");
    openssl(
        folder,
        &format!(
            "ca -batch -config ca.conf -keyfile ca.key -cert ca.pem -notext {times} -in {name}.csr -out {name}.pem"
        ),
    )?;
    Ok((folder.join(format!("{name}.pem")), folder.join(format!("{name}.key"))))
}

/// Replaces the certificate that the API server shows by a new one, of another key and of no authority that was trusted before;
/// the server reads it again by itself.
pub(crate) fn replace_serving(folder: &Path) -> Result<()> {
    let names =
        "-addext subjectAltName=IP:127.0.0.1,DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=next";
    openssl(folder, &format!("{args} {names} -keyout next.key -out next.crt"))?;
    for (made, used) in [("next.key", "apiserver.key"), ("next.crt", "apiserver.crt")] {
        fs::rename(folder.join(made), folder.join("certificates").join(used))?;
    }
    Ok(())
}

fn openssl(folder: &Path, args: &str) -> Result<()> {
    let made = Command::new("openssl").args(args.split(' ')).current_dir(folder).output();
    let made = made.context("failed to run openssl")?;
    ensure!(made.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}
