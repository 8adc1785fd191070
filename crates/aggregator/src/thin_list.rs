//! A list that nearly always has no element, and is kept in very great numbers.

use std::ops::Deref;

/// A list that takes one pointer, and nothing else while it is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinList<T>(Option<Box<Box<[T]>>>);

const _: () = assert!(size_of::<ThinList<u64>>() == 8);

impl<T> Default for ThinList<T> {
    fn default() -> Self {
        ThinList(None)
    }
}

impl<T> Deref for ThinList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], |items| items)
    }
}

impl<T> From<Vec<T>> for ThinList<T> {
    fn from(items: Vec<T>) -> Self {
        ThinList((!items.is_empty()).then(|| Box::new(items.into_boxed_slice())))
    }
}

impl<T> FromIterator<T> for ThinList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a, T> IntoIterator for &'a ThinList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> ThinList<T> {
    /// Bytes that it holds beside itself, without what hangs on its elements.
    pub fn heap_size(&self) -> usize {
        self.0.as_ref().map_or(0, |items| size_of_val(&**items) + size_of_val(&***items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_holds_nothing_and_any_other_its_elements_in_order() {
        let empty: ThinList<u64> = Vec::with_capacity(8).into();
        assert_eq!((empty.heap_size(), empty.len()), (0, 0));
        assert_eq!(empty, ThinList::default());
        let three: ThinList<u64> = (1..=3).collect();
        assert_eq!(three.heap_size(), size_of::<Box<[u64]>>() + 3 * size_of::<u64>());
        assert_eq!((&three).into_iter().collect::<Vec<_>>(), [&1, &2, &3]);
    }
}
