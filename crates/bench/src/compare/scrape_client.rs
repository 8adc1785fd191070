//! Scrapes over one connection, with the headers of Prometheus.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use flate2::read::GzDecoder;

/// Formats that Prometheus asks for where native histograms are off.
const ACCEPT: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
    text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
/// Longest silence within an answer, as long as a scrape of Prometheus may take.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a program that exports metrics.
pub(crate) struct ScrapeClient {
    stream: BufReader<TcpStream>,
    request: String,
}

/// An answer to a scrape.
pub(crate) struct ScrapeAnswer {
    /// From the request to the last byte of the body.
    pub(crate) took: Duration,
    /// The body as it was sent.
    body: Vec<u8>,
    is_compressed: bool,
}

/// How long a body is.
#[derive(Default)]
struct ResponseHead {
    length: Option<usize>,
    is_chunked: bool,
    is_compressed: bool,
}

impl ScrapeClient {
    /// Connects to this port of the loopback address.
    pub(crate) fn connect(port: u16) -> anyhow::Result<ScrapeClient> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SCRAPE_TIMEOUT))?;
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: Prometheus/3\r\nAccept: {ACCEPT}\r\n\
            Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"
        );
        Ok(ScrapeClient { stream: BufReader::with_capacity(64 * 1024, stream), request })
    }

    /// Scrapes once.
    pub(crate) fn scrape(&mut self) -> anyhow::Result<ScrapeAnswer> {
        let begun = Instant::now();
        self.stream.get_mut().write_all(self.request.as_bytes())?;
        let head = self.read_head()?;
        let body = self.read_body(&head)?;
        Ok(ScrapeAnswer { took: begun.elapsed(), body, is_compressed: head.is_compressed })
    }

    fn read_line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "the answer to a scrape is cut off");
        Ok(line.trim_end().to_ascii_lowercase())
    }

    fn read_head(&mut self) -> anyhow::Result<ResponseHead> {
        let status = self.read_line()?;
        ensure!(status.starts_with("http/1.1 200"), "a scrape is answered {status}");
        let mut head = ResponseHead::default();
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok(head) };
            match (name, value.trim()) {
                ("content-length", length) => head.length = Some(length.parse()?),
                ("transfer-encoding", coding) => head.is_chunked = coding == "chunked",
                ("content-encoding", coding) => head.is_compressed = coding == "gzip",
                _ => {}
            }
        }
    }

    fn read_body(&mut self, head: &ResponseHead) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        if !head.is_chunked {
            body.resize(head.length.context("a scrape is answered without a length")?, 0);
            self.stream.read_exact(&mut body)?;
            return Ok(body);
        }
        loop {
            let size = usize::from_str_radix(&self.read_line()?, 16).context("the length of a chunk")?;
            let from = body.len();
            body.resize(from + size, 0);
            self.stream.read_exact(&mut body[from..])?;
            self.read_line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
}

impl ScrapeAnswer {
    /// Bytes of the body as it was sent.
    pub(crate) fn sent(&self) -> usize {
        self.body.len()
    }

    /// The metrics as text.
    pub(crate) fn to_text(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        let mut body = &*self.body;
        let mut reader: Box<dyn Read + '_> =
            if self.is_compressed { Box::new(GzDecoder::new(body)) } else { Box::new(&mut body) };
        reader.read_to_string(&mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Answers one scrape after the other on one connection.
    fn serve(answers: Vec<Vec<u8>>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            for answer in answers {
                let request = stream.by_ref().lines().map_while(Result::ok);
                request.take_while(|line| !line.is_empty()).for_each(drop);
                stream.get_mut().write_all(&answer).unwrap();
            }
        });
        port
    }

    #[test]
    fn bodies_are_read_in_chunks_by_length_and_compressed() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"a 1\n").unwrap();
        let gzip = gzip.finish().unwrap();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", gzip.len());
        let port = serve(vec![
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n".to_vec(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na \r\n2\r\n1\n\r\n0\r\n\r\n".to_vec(),
            [head.as_bytes(), &gzip].concat(),
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec(),
        ]);
        let mut client = ScrapeClient::connect(port).unwrap();
        for sent in [4, 4, gzip.len()] {
            let answer = client.scrape().unwrap();
            assert_eq!((answer.sent(), &*answer.to_text().unwrap()), (sent, "a 1\n"));
        }
        assert!(client.scrape().is_err());
    }
}
