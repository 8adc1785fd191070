//! The picture with which the README opens: a scene of the demo, as a terminal shows it. `ROLLCALL_PICTURES=write` draws it
//! again.

use std::fmt::Write as _;
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;

use super::terminal::LiveTerminal;

const PICTURE: &str = "deploy/pictures/demo.svg";
const COLUMNS: u16 = 84;
/// More rows than the demo has.
const ROWS: u16 = 1_000;
/// The scene that is drawn, and the one after it.
const SCENES: [&str; 2] = ["5 of 9", "6 of 9"];
/// Size of a character, in the units of the picture.
const CELL: (u32, u32) = (8, 19);

/// Colours on a dark ground: the eight of a terminal, and that of text.
const COLOURS: [&str; 8] =
    ["#565f89", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#c0caf5"];

/// Characters in a row that look alike.
struct StyledRun {
    column: u16,
    text: String,
    style: String,
}

fn style_of(cell: &vt100::Cell) -> String {
    let colour = match cell.fgcolor() {
        vt100::Color::Idx(index) => COLOURS[usize::from(index % 8)],
        _ if cell.dim() => "#737aa2",
        _ => COLOURS[7],
    };
    let weight = if cell.bold() { " font-weight=\"bold\"" } else { "" };
    format!("fill=\"{colour}\"{weight}")
}

fn runs_of(screen: &vt100::Screen, row: u16) -> Vec<StyledRun> {
    let mut runs: Vec<StyledRun> = Vec::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else { continue };
        let style = style_of(cell);
        match runs.last_mut() {
            Some(run)
                if run.style == style
                    && usize::from(run.column) + run.text.chars().count() == usize::from(column) =>
            {
                run.text.push_str(cell.contents());
            }
            _ => runs.push(StyledRun { column, text: cell.contents().to_owned(), style }),
        }
    }
    // How old something is differs from run to run.
    if let Some(last) = runs.last_mut()
        && last.text.trim().strip_suffix('s').is_some_and(|age| age.parse::<u32>().is_ok())
    {
        "3s".clone_into(&mut last.text);
        last.column = COLUMNS;
    }
    runs
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn draw(screen: &vt100::Screen) -> String {
    let texts: Vec<String> = screen.rows(0, COLUMNS).collect();
    let [from, to] = SCENES.map(|scene| texts.iter().position(|row| row.contains(scene)).unwrap());
    let rows = u16::try_from(from).unwrap()..u16::try_from(to).unwrap() - 1;
    let (width, height) =
        ((u32::from(COLUMNS) + 4) * CELL.0, (u32::try_from(rows.len()).unwrap() + 2) * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>One scene of rollcall demo</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1a1b26\"/>\n"
    );
    for (line, row) in (1_u32..).zip(rows) {
        let y = (line + 1) * CELL.1 - 5;
        for StyledRun { column, text, style } in runs_of(screen, row) {
            let (x, length) =
                ((u32::from(column) + 1) * CELL.0, u32::try_from(text.chars().count()).unwrap() * CELL.0);
            let text = escape(&text);
            writeln!(svg, "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" xml:space=\"preserve\" {style}>{text}</text>")
                .unwrap();
        }
    }
    svg + "</svg>\n"
}

#[tokio::test]
async fn the_picture_of_the_readme_is_what_the_demo_shows() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    demo.args(["demo", "--once", "--speed", "0"]);
    let terminal = LiveTerminal::start(&demo, COLUMNS, &[]);
    terminal
        .until("the end of the story", |rows| rows.iter().any(|row| row.contains("expectations held")))
        .await;
    let [rows, columns] = [ROWS, COLUMNS].map(|size| NonZeroU16::new(size).unwrap());
    let mut screen = vt100::Parser::new(rows, columns, 0);
    screen.process(terminal.sent().as_bytes());
    let drawn = draw(screen.screen());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PICTURE);
    if std::env::var("ROLLCALL_PICTURES").is_ok_and(|wish| wish == "write") {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = kept.lines().zip(drawn.lines()).find(|(kept, drawn)| kept != drawn);
    assert!(
        kept == drawn,
        "{PICTURE} is not what the demo shows, from {differs:?} on: ROLLCALL_PICTURES=write draws it again"
    );
}
