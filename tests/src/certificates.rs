//! Certificates: of clients, issued by a control plane's own authority, and of servers, signed by themselves.

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
    let (certificate, key) = self_signed(folder, "next")?;
    for (made, used) in [(key, "apiserver.key"), (certificate, "apiserver.crt")] {
        fs::rename(made, folder.join("certificates").join(used))?;
    }
    Ok(())
}

/// Makes a certificate of a server on loopback, signed by itself. Returns it and its key.
pub fn self_signed(folder: &Path, name: &str) -> Result<(PathBuf, PathBuf)> {
    let names =
        "-addext subjectAltName=IP:127.0.0.1,DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30";
    openssl(folder, &format!("{args} -subj /CN={name} {names} -keyout {name}.key -out {name}.crt"))?;
    Ok((folder.join(format!("{name}.crt")), folder.join(format!("{name}.key"))))
}

fn openssl(folder: &Path, args: &str) -> Result<()> {
    let made = Command::new("openssl").args(args.split(' ')).current_dir(folder).output();
    let made = made.context("failed to run openssl")?;
    ensure!(made.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}
