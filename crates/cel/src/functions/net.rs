//! IP addresses and networks.

use std::net::IpAddr;

use crate::cel_type::CelType::{self, Bool, Int, Text};
use crate::fault::EvalFault;
use crate::kube_types::{CidrBlock, parse_address};
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::CelValue;

const IP_TYPE: CelType = CelType::Ip;
const CIDR_TYPE: CelType = CelType::Cidr;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("ip", &[Text], IP_TYPE, |_, args| parse_argument(args, parse_address).map(CelValue::Ip)),
    global_function("isIP", &[Text], Bool, |_, args| {
        Ok(CelValue::Bool(parse_argument(args, parse_address).is_ok()))
    }),
    global_function("ip.isCanonical", &[Text], Bool, |_, args| match args {
        [CelValue::Text(given)] => {
            Ok(CelValue::Bool(parse_argument(args, parse_address)?.to_string() == **given))
        }
        _ => Err(argument_mismatch(args)),
    }),
    member_function("family", &[IP_TYPE], Int, |_, args| {
        map_ip_argument(args, |ip| if ip.is_ipv4() { 4 } else { 6 }).map(CelValue::Int)
    }),
    member_function("isUnspecified", &[IP_TYPE], Bool, |_, args| {
        map_ip_argument(args, IpAddr::is_unspecified).map(CelValue::Bool)
    }),
    member_function("isLoopback", &[IP_TYPE], Bool, |_, args| {
        map_ip_argument(args, IpAddr::is_loopback).map(CelValue::Bool)
    }),
    member_function("isLinkLocalMulticast", &[IP_TYPE], Bool, |_, args| {
        map_ip_argument(args, is_link_local_multicast).map(CelValue::Bool)
    }),
    member_function("isLinkLocalUnicast", &[IP_TYPE], Bool, |_, args| {
        map_ip_argument(args, is_link_local).map(CelValue::Bool)
    }),
    member_function("isGlobalUnicast", &[IP_TYPE], Bool, |_, args| {
        map_ip_argument(args, is_global_unicast).map(CelValue::Bool)
    }),
    global_function("cidr", &[Text], CIDR_TYPE, |_, args| {
        parse_argument(args, CidrBlock::parse_cidr).map(CelValue::Cidr)
    }),
    global_function("isCIDR", &[Text], Bool, |_, args| {
        Ok(CelValue::Bool(parse_argument(args, CidrBlock::parse_cidr).is_ok()))
    }),
    member_function("containsIP", &[CIDR_TYPE, Text], Bool, contains_ip),
    member_function("containsIP", &[CIDR_TYPE, IP_TYPE], Bool, contains_ip),
    member_function("containsCIDR", &[CIDR_TYPE, Text], Bool, contains_cidr),
    member_function("containsCIDR", &[CIDR_TYPE, CIDR_TYPE], Bool, contains_cidr),
    member_function("ip", &[CIDR_TYPE], IP_TYPE, |_, args| {
        cidr_argument(args).map(|cidr| CelValue::Ip(cidr.address))
    }),
    member_function("masked", &[CIDR_TYPE], CIDR_TYPE, |_, args| {
        cidr_argument(args).map(|cidr| CelValue::Cidr(cidr.to_masked()))
    }),
    member_function("prefixLength", &[CIDR_TYPE], Int, |_, args| {
        cidr_argument(args).map(|cidr| CelValue::Int(i64::from(cidr.prefix)))
    }),
];

fn parse_argument<T>(args: &[CelValue<'_>], read: impl FnOnce(&str) -> Option<T>) -> Result<T, EvalFault> {
    match args {
        [CelValue::Text(text)] => read(text).ok_or_else(|| EvalFault::from_message("no address")),
        _ => Err(argument_mismatch(args)),
    }
}

fn map_ip_argument<T>(args: &[CelValue<'_>], read: impl FnOnce(&IpAddr) -> T) -> Result<T, EvalFault> {
    match args {
        [CelValue::Ip(ip)] => Ok(read(ip)),
        _ => Err(argument_mismatch(args)),
    }
}

fn cidr_argument(args: &[CelValue<'_>]) -> Result<CidrBlock, EvalFault> {
    match args {
        [CelValue::Cidr(cidr)] => Ok(*cidr),
        _ => Err(argument_mismatch(args)),
    }
}

fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

/// Returns `true` for a global unicast address as Go defines it: not broadcast, unspecified, loopback, multicast or
/// link-local.
fn is_global_unicast(ip: &IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local(ip))
}

fn contains_ip<'t>(_: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (cidr, ip) = match args {
        [CelValue::Cidr(cidr), CelValue::Ip(ip)] => (cidr, *ip),
        [CelValue::Cidr(cidr), ip] => (cidr, parse_argument(std::slice::from_ref(ip), parse_address)?),
        _ => return Err(argument_mismatch(args)),
    };
    Ok(CelValue::Bool(cidr.contains_address(ip)))
}

fn contains_cidr<'t>(_: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (cidr, other) = match args {
        [CelValue::Cidr(cidr), CelValue::Cidr(other)] => (cidr, *other),
        [CelValue::Cidr(cidr), other] => {
            (cidr, parse_argument(std::slice::from_ref(other), CidrBlock::parse_cidr)?)
        }
        _ => return Err(argument_mismatch(args)),
    };
    Ok(CelValue::Bool(cidr.prefix <= other.prefix && cidr.contains_address(other.address)))
}
