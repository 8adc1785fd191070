//! Types that Kubernetes adds to CEL.

mod cidr_block;
mod parsed_url;
mod resource_quantity;
mod semantic_version;

pub(crate) use cidr_block::{CidrBlock, parse_address};
pub(crate) use parsed_url::{ParsedUrl, split_host, unescape_text};
pub(crate) use resource_quantity::{NANOS_PER_UNIT, ResourceQuantity};
pub(crate) use semantic_version::SemanticVersion;
