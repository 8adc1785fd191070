//! IP networks, parsed as Kubernetes does.

use std::fmt;
use std::net::IpAddr;

/// An address with a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CidrBlock {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl CidrBlock {
    pub(crate) fn parse_cidr(text: &str) -> Option<CidrBlock> {
        let (ip, prefix) = text.split_once('/')?;
        let ip = parse_address(ip)?;
        let canonical = !prefix.is_empty()
            && prefix.len() <= 3
            && prefix.bytes().all(|b| b.is_ascii_digit())
            && (prefix.len() == 1 || !prefix.starts_with('0'));
        let prefix: u8 = if canonical { prefix.parse().ok()? } else { return None };
        (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some(CidrBlock { address: ip, prefix })
    }

    pub(crate) fn to_masked(self) -> CidrBlock {
        CidrBlock { address: mask_address(self.address, self.prefix), ..self }
    }

    pub(crate) fn contains_address(self, ip: IpAddr) -> bool {
        self.address.is_ipv4() == ip.is_ipv4() && mask_address(ip, self.prefix) == self.to_masked().address
    }
}

impl fmt::Display for CidrBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Parses an address without a zone; an IPv4-mapped IPv6 address is refused.
pub(crate) fn parse_address(text: &str) -> Option<IpAddr> {
    match text.parse().ok()? {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => None,
        ip => Some(ip),
    }
}

fn mask_address(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}
