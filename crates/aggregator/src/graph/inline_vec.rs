//! A list that usually has no element or one.

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
