use cuesheet::{edit, parse, parse::write, stats, wrap, Cue};

const SHEET: &str = "\
# A short scene
00:01 --> 00:03
Good morning

00:02.5 --> 00:04
Good morning

00:10 --> 00:11.25
Where did you leave the other ladder?
";

#[test]
fn written_sheets_read_the_same() {
    let cues = parse(SHEET).unwrap();
    assert_eq!(parse(&write(&cues)).unwrap(), cues);
    assert!(write(&cues).starts_with("00:00:01.000 --> 00:00:03.000\nGood morning\n\n00:00:02.500"));
}

#[test]
fn joined_and_shifted() {
    let cues = edit::shift(&edit::join_repeats(&parse(SHEET).unwrap(), 0), 60_000);
    assert_eq!(cues.len(), 2);
    assert_eq!(cues[0], Cue::new(61_000, 64_000, "Good morning"));
    assert_eq!(stats::longest_silence(&cues), 61_000);
}

#[test]
fn fast_cues_are_found_and_wrapped() {
    let cues = parse(SHEET).unwrap();
    assert_eq!(stats::too_fast(&cues, 20.0), [2]);
    assert_eq!(
        wrap::balance(&cues[2].text, 30),
        ["Where did you leave", "the other ladder?"]
    );
}
