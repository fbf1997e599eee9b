//! The known name that was probably meant by a misspelled one.

/// Highest number of edits between a name and the one that is suggested for it.
pub(super) const MAX_EDITS: usize = 3;

/// Returns the name among `known` that differs least from `name`, by at most `max_edits` inserted, deleted, replaced or
/// exchanged characters; `None` if there is none.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, max_edits: usize) -> Option<&'a str> {
    let edits = |known: &&str| strsim::damerau_levenshtein(name, known);
    let (edits, nearest) = known.into_iter().map(|known| (edits(&known), known)).min()?;
    (edits <= max_edits).then_some(nearest)
}
