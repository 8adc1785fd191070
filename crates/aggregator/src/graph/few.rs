//! Mostly none or one of a thing, now and then many.

use readiness::Level;
use readiness::rollup::Weight;

/// None or one inline, more behind a thin pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Box<Box<[T]>>),
}

impl<T: Copy> Few<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(one) => std::slice::from_ref(one),
            Few::Many(many) => many,
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Few::None => &mut [],
            Few::One(one) => std::slice::from_mut(one),
            Few::Many(many) => many,
        }
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.as_slice().iter()
    }

    pub(crate) fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            Few::None => Few::One(item),
            Few::One(one) => Few::Many(Box::new(Box::new([one, item]))),
            Few::Many(many) => Few::Many(Box::new(many.iter().copied().chain([item]).collect())),
        };
    }

    pub(crate) fn from_slice(items: &[T]) -> Self {
        match items {
            [] => Few::None,
            [one] => Few::One(*one),
            many => Few::Many(Box::new(many.into())),
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        *self = self.iter().copied().filter(|item| keep(item)).collect();
    }
}

impl<T: Copy> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Few::from_slice(&items.into_iter().collect::<Vec<_>>())
    }
}

/// The verdicts of one object, one per lens: almost always one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    One(Weight),
    Many(Box<Box<[Weight]>>),
}

/// What was not seen is unknown.
pub(crate) const UNSEEN: Weight = Weight { level: Level::Unknown, terminal: false };

impl Default for Weights {
    fn default() -> Self {
        Weights::One(UNSEEN)
    }
}

impl Weights {
    pub(crate) fn of(weights: &[Weight]) -> Self {
        match weights {
            [] => Weights::default(),
            [one] => Weights::One(*one),
            many => Weights::Many(Box::new(many.into())),
        }
    }

    pub(crate) fn get(&self, lens: u8) -> Weight {
        match self {
            Weights::One(one) => *one,
            Weights::Many(many) => many.get(usize::from(lens)).or(many.first()).copied().unwrap_or(UNSEEN),
        }
    }
}

/// By its rolls, but being deleted is not something that a roll of children knows better.
pub(crate) fn weigh(own: Weight, rolled: Option<Weight>) -> Weight {
    match rolled {
        Some(rolled) if !matches!(own.level, Level::Stuck | Level::Terminating) => rolled,
        _ => own,
    }
}
