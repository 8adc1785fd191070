//! A list that usually has no element or one.

use readiness::Level;
use readiness::rollup::ChildWeight;

/// A list with up to one element inline, more behind a thin pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum InlineVec<T> {
    #[default]
    None,
    One(T),
    Many(Box<Box<[T]>>),
}

impl<T: Copy> InlineVec<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            InlineVec::None => &[],
            InlineVec::One(one) => std::slice::from_ref(one),
            InlineVec::Many(many) => many,
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            InlineVec::None => &mut [],
            InlineVec::One(one) => std::slice::from_mut(one),
            InlineVec::Many(many) => many,
        }
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.as_slice().iter()
    }

    pub(crate) fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            InlineVec::None => InlineVec::One(item),
            InlineVec::One(one) => InlineVec::Many(Box::new(Box::new([one, item]))),
            InlineVec::Many(many) => InlineVec::Many(Box::new(many.iter().copied().chain([item]).collect())),
        };
    }

    pub(crate) fn from_slice(items: &[T]) -> Self {
        match items {
            [] => InlineVec::None,
            [one] => InlineVec::One(*one),
            many => InlineVec::Many(Box::new(many.into())),
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        *self = self.iter().copied().filter(|item| keep(item)).collect();
    }
}

impl<T: Copy> FromIterator<T> for InlineVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        InlineVec::from_slice(&items.into_iter().collect::<Vec<_>>())
    }
}

/// Verdict weights of one object, one per rule index: almost always one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectWeights {
    One(ChildWeight),
    Many(Box<Box<[ChildWeight]>>),
}

/// Weight of an object that was not observed: unknown.
pub(crate) const UNSEEN_WEIGHT: ChildWeight = ChildWeight::of(Level::Unknown);

impl Default for ObjectWeights {
    fn default() -> Self {
        ObjectWeights::One(UNSEEN_WEIGHT)
    }
}

impl ObjectWeights {
    pub(crate) fn from_slice(weights: &[ChildWeight]) -> Self {
        match weights {
            [] => ObjectWeights::default(),
            [one] => ObjectWeights::One(*one),
            many => ObjectWeights::Many(Box::new(many.into())),
        }
    }

    pub(crate) fn get(&self, rule_index: u16) -> ChildWeight {
        match self {
            ObjectWeights::One(one) => *one,
            ObjectWeights::Many(many) => {
                many.get(usize::from(rule_index)).or(many.first()).copied().unwrap_or(UNSEEN_WEIGHT)
            }
        }
    }
}

/// What the evaluations of an observed parent make of it as a child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvaluatedWeight {
    pub(crate) weight: ChildWeight,
    /// It is being deleted.
    pub(crate) deleting: bool,
}

/// Returns the weight of an object from its evaluations if it has any. Its own deletion takes precedence over them, by the
/// limits of whoever counts it; nothing else that it says of itself does, because some of that are our own words.
pub(crate) fn weigh_with_evaluations(own: ChildWeight, evaluated: Option<EvaluatedWeight>) -> ChildWeight {
    match evaluated {
        Some(parent) if parent.deleting && matches!(own.level(), Level::Stuck | Level::Terminating) => own,
        Some(parent) => parent.weight,
        None => own,
    }
}
