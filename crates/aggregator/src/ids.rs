//! Small integers for objects owned elsewhere.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl From<$name> for u64 {
            fn from(id: $name) -> u64 {
                u64::from(id.0)
            }
        }

        impl $name {
            /// Its place in a table that has one for each number.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// One object, by its slot in the reflector.
    ObjectId(u32)
);
id!(
    /// One watched kind. Numbers are given once, and a policy that names a kind for which there is none left is refused.
    KindId(u32)
);
id!(
    /// One policy. Numbers are given anew, and never while they are held.
    PolicyId(u32)
);
id!(
    /// One interned label selection: policy, group, namespace and rendered values.
    SelectorId(u32)
);
id!(
    /// One evaluation of a parent under a policy.
    EvaluationId(u32)
);
