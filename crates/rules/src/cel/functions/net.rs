//! Addresses and networks.

use std::fmt;
use std::net::IpAddr;

use super::super::value::Ty::{self, Bool, Int, Text};
use super::super::value::{Fault, Val};
use super::{Cx, Function, global, member, unfit};

const IP: Ty = Ty::Ip;
const CIDR: Ty = Ty::Cidr;

pub(super) const TABLE: &[Function] = &[
    global("ip", &[Text], IP, |_, args| text(args, address).map(Val::Ip)),
    global("isIP", &[Text], Bool, |_, args| Ok(Val::Bool(text(args, address).is_ok()))),
    global("ip.isCanonical", &[Text], Bool, |_, args| match args {
        [Val::Text(given)] => Ok(Val::Bool(text(args, address)?.to_string() == **given)),
        _ => Err(unfit(args)),
    }),
    member("family", &[IP], Int, |_, args| one(args, |ip| if ip.is_ipv4() { 4 } else { 6 }).map(Val::Int)),
    member("isUnspecified", &[IP], Bool, |_, args| one(args, IpAddr::is_unspecified).map(Val::Bool)),
    member("isLoopback", &[IP], Bool, |_, args| one(args, IpAddr::is_loopback).map(Val::Bool)),
    member("isLinkLocalMulticast", &[IP], Bool, |_, args| one(args, link_local_multicast).map(Val::Bool)),
    member("isLinkLocalUnicast", &[IP], Bool, |_, args| one(args, link_local).map(Val::Bool)),
    member("isGlobalUnicast", &[IP], Bool, |_, args| one(args, global_unicast).map(Val::Bool)),
    global("cidr", &[Text], CIDR, |_, args| text(args, Cidr::parse).map(Val::Cidr)),
    global("isCIDR", &[Text], Bool, |_, args| Ok(Val::Bool(text(args, Cidr::parse).is_ok()))),
    member("containsIP", &[CIDR, Text], Bool, contains_ip),
    member("containsIP", &[CIDR, IP], Bool, contains_ip),
    member("containsCIDR", &[CIDR, Text], Bool, contains_cidr),
    member("containsCIDR", &[CIDR, CIDR], Bool, contains_cidr),
    member("ip", &[CIDR], IP, |_, args| network(args).map(|cidr| Val::Ip(cidr.address))),
    member("masked", &[CIDR], CIDR, |_, args| network(args).map(|cidr| Val::Cidr(cidr.masked()))),
    member("prefixLength", &[CIDR], Int, |_, args| {
        network(args).map(|cidr| Val::Int(i64::from(cidr.prefix)))
    }),
];

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    fn parse(text: &str) -> Option<Cidr> {
        let (ip, prefix) = text.split_once('/')?;
        let ip = address(ip)?;
        let canonical = !prefix.is_empty()
            && prefix.len() <= 3
            && prefix.bytes().all(|b| b.is_ascii_digit())
            && (prefix.len() == 1 || !prefix.starts_with('0'));
        let prefix: u8 = if canonical { prefix.parse().ok()? } else { return None };
        (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some(Cidr { address: ip, prefix })
    }

    fn masked(self) -> Cidr {
        Cidr { address: mask(self.address, self.prefix), ..self }
    }

    fn holds(self, ip: IpAddr) -> bool {
        self.address.is_ipv4() == ip.is_ipv4() && mask(ip, self.prefix) == self.masked().address
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// No zones, and no IPv4 in the clothes of IPv6.
fn address(text: &str) -> Option<IpAddr> {
    match text.parse().ok()? {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => None,
        ip => Some(ip),
    }
}

fn mask(ip: IpAddr, prefix: u8) -> IpAddr {
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

fn text<T>(args: &[Val<'_>], read: impl FnOnce(&str) -> Option<T>) -> Result<T, Fault> {
    match args {
        [Val::Text(text)] => read(text).ok_or_else(|| Fault::words("no address")),
        _ => Err(unfit(args)),
    }
}

fn one<T>(args: &[Val<'_>], read: impl FnOnce(&IpAddr) -> T) -> Result<T, Fault> {
    match args {
        [Val::Ip(ip)] => Ok(read(ip)),
        _ => Err(unfit(args)),
    }
}

fn network(args: &[Val<'_>]) -> Result<Cidr, Fault> {
    match args {
        [Val::Cidr(cidr)] => Ok(*cidr),
        _ => Err(unfit(args)),
    }
}

fn link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

/// As Go has it: everything but broadcast, unspecified, loopback, multicast and link-local.
fn global_unicast(ip: &IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || link_local(ip))
}

fn contains_ip<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (cidr, ip) = match args {
        [Val::Cidr(cidr), Val::Ip(ip)] => (cidr, *ip),
        [Val::Cidr(cidr), ip] => (cidr, text(std::slice::from_ref(ip), address)?),
        _ => return Err(unfit(args)),
    };
    Ok(Val::Bool(cidr.holds(ip)))
}

fn contains_cidr<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let (cidr, other) = match args {
        [Val::Cidr(cidr), Val::Cidr(other)] => (cidr, *other),
        [Val::Cidr(cidr), other] => (cidr, text(std::slice::from_ref(other), Cidr::parse)?),
        _ => return Err(unfit(args)),
    };
    Ok(Val::Bool(cidr.prefix <= other.prefix && cidr.holds(other.address)))
}
