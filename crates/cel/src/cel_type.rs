//! Types that are known at compile time.

/// The statically known type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CelType {
    /// Unknown.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    List,
    Map,
    Timestamp,
    Duration,
    Type,
    Optional,
    Quantity,
    Ip,
    Cidr,
    Url,
    Semver,
}

impl CelType {
    /// Returns the type's name in CEL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            CelType::Dyn => "dyn",
            CelType::Null => "null_type",
            CelType::Bool => "bool",
            CelType::Int => "int",
            CelType::Uint => "uint",
            CelType::Double => "double",
            CelType::Text => "string",
            CelType::Bytes => "bytes",
            CelType::List => "list",
            CelType::Map => "map",
            CelType::Timestamp => "google.protobuf.Timestamp",
            CelType::Duration => "google.protobuf.Duration",
            CelType::Type => "type",
            CelType::Optional => "optional_type",
            CelType::Quantity => "kubernetes.Quantity",
            CelType::Ip => "net.IP",
            CelType::Cidr => "net.CIDR",
            CelType::Url => "kubernetes.URL",
            CelType::Semver => "kubernetes.Semver",
        }
    }

    /// Returns `true` if a value of this type may be used where `other` is required.
    pub(crate) fn is_compatible(self, other: CelType) -> bool {
        self == CelType::Dyn || other == CelType::Dyn || self == other
    }

    pub(crate) const fn is_numeric(self) -> bool {
        matches!(self, CelType::Int | CelType::Uint | CelType::Double)
    }

    /// Returns the type of a value that has either type.
    pub(crate) fn unify_with(self, other: CelType) -> CelType {
        if self == other { self } else { CelType::Dyn }
    }
}
