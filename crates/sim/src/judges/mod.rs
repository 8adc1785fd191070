//! The judges, who share nothing with the product but the terms: what was shown to it, what may be said of that, and the
//! invariants. They change nothing; each looks at a [`JudgedMoment`].

mod answer_agreement;
mod answer_judge;
mod checked_generation;
mod checked_parents;
mod commit_judge;
mod end_answers;
mod judged_moment;
mod kstatus_reader;
mod naive_judge;
mod naive_words;
mod number_judge;
mod overlap_judge;
mod own_entries;
mod plan_watch;
mod policy_checks;
mod quote_checks;
mod reader_judge;
mod shared_parents;
mod shown_objects;
mod store_oracle;
mod store_shortfall;
mod stored_objects;
mod words_judge;
mod write_checks;
mod write_troubles;

pub(crate) use answer_judge::AnswerJudge;
pub(crate) use checked_generation::{BLIND_LIMIT, MAX_ANSWER_LAG_MS};
pub(crate) use checked_parents::CheckedParents;
pub(crate) use commit_judge::CommitJudge;
pub(crate) use end_answers::describe_answers;
pub(crate) use judged_moment::JudgedMoment;
pub(crate) use number_judge::NumberJudge;
pub(crate) use overlap_judge::OverlapJudge;
pub(crate) use plan_watch::PlanWatch;
pub(crate) use reader_judge::ReaderJudge;
pub(crate) use shown_objects::{ShownMoment, ShownObjects};
pub(crate) use store_oracle::check_end;
pub(crate) use words_judge::WordsJudge;
pub(crate) use write_checks::check_decision;
pub(crate) use write_troubles::WriteTroubles;
