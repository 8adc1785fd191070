//! What parents ask for in their own spec, where a policy is for those that ask for the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Reads what an object asks for, from its text: equal results mean the same rules. The error says why there can be none for it.
pub type ReadShape = fn(&str) -> Result<String, String>;

/// Why parents of one shape cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeRefusal {
    /// What parents of all other namespaces are told.
    pub why: Arc<str>,
    /// What those of a namespace are told, where that depends on it. It may be for nobody else to read.
    pub by_namespace: BTreeMap<Box<str>, Arc<str>>,
}

/// Selects parents by what they ask for.
#[derive(Clone)]
pub struct ShapeMatcher {
    read: ReadShape,
    /// `None`: all that no other rule of the kind selects.
    shape: Option<Arc<str>>,
    /// Why no such parent can be judged, where it cannot.
    refusal: Option<ShapeRefusal>,
}

impl ShapeMatcher {
    /// Selects the parents of which `read` yields this shape.
    pub fn is(shape: Arc<str>, read: ReadShape) -> ShapeMatcher {
        ShapeMatcher { read, shape: Some(shape), refusal: None }
    }

    /// Selects all parents that rules for shapes leave; none of them can be judged. Those that have a shape are told `why`, others
    /// why they have none.
    pub fn refusing_others(why: Arc<str>, read: ReadShape) -> ShapeMatcher {
        let refusal = ShapeRefusal { why, by_namespace: BTreeMap::new() };
        ShapeMatcher { read, shape: None, refusal: Some(refusal) }
    }

    /// The same, of parents that cannot be judged.
    #[must_use]
    pub fn refused(self, refusal: ShapeRefusal) -> ShapeMatcher {
        ShapeMatcher { refusal: Some(refusal), ..self }
    }

    /// Returns `true` if the parents that it selects cannot be judged.
    pub fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// The shape of the parents that it selects, where it is for those of one.
    pub fn shape(&self) -> Option<&str> {
        self.shape.as_deref()
    }

    /// Reads the shape of an object.
    pub(crate) fn read_shape(&self, object: &str) -> Option<String> {
        (self.read)(object).ok()
    }

    /// Returns `true` if it selects parents of this shape.
    pub(crate) fn matches(&self, shape: Option<&str>) -> bool {
        self.shape.as_deref().is_none_or(|own| Some(own) == shape)
    }

    /// Returns `true` if it selects whatever others leave.
    pub(crate) fn is_for_others(&self) -> bool {
        self.shape.is_none()
    }

    /// Why a parent of this namespace that it selects cannot be judged; `None` if it can.
    pub fn refusal_of(&self, namespace: &str, object: &str) -> Option<String> {
        let ShapeRefusal { why, by_namespace } = self.refusal.as_ref()?;
        let of_its_own = self.shape.is_none().then(|| (self.read)(object).err()).flatten();
        let of_namespace = || by_namespace.get(namespace).unwrap_or(why).to_string();
        Some(of_its_own.unwrap_or_else(of_namespace))
    }
}

impl PartialEq for ShapeMatcher {
    fn eq(&self, other: &Self) -> bool {
        (&self.shape, &self.refusal) == (&other.shape, &other.refusal)
    }
}

impl Eq for ShapeMatcher {}

impl fmt::Debug for ShapeMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShapeMatcher({:?}, {:?})", self.shape, self.refusal)
    }
}
