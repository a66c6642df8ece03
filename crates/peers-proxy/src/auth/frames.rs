//! The text messages in what a WebSocket server sends, read beside their way to the client.

/// A message beyond this is not read.
const HELD: usize = 2 * 1024 * 1024;
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const TEXT: u8 = 1;
const CONTINUATION: u8 = 0;

/// A reader of frames that come in pieces.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: Vec<u8>,
    /// Payload bytes of the frame at hand that are still to come.
    left: u64,
    /// What the frame at hand belongs to.
    part: Part,
    last: bool,
    /// The text message that is being collected.
    message: Option<Vec<u8>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A frame of control, binary, compressed or masked.
    #[default]
    Other,
    Text,
}

impl Frames {
    /// Takes in bytes and hands out each text message that they complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some((&byte, after)) = bytes.split_first() {
            if self.left > 0 {
                let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                let (payload, rest) = bytes.split_at(n);
                self.take(payload);
                bytes = rest;
            } else {
                bytes = after;
                self.head.push(byte);
                if !self.begin() {
                    continue;
                }
            }
            if self.left == 0 {
                self.end(&mut each);
            }
        }
    }

    /// Reads the head, once it is whole.
    fn begin(&mut self) -> bool {
        let [first, second, extended @ ..] = self.head.as_slice() else { return false };
        let length = match second & !MASKED {
            126 => extended.first_chunk().map(|bytes| u64::from(u16::from_be_bytes(*bytes))),
            127 => extended.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
            short => Some(u64::from(short)),
        };
        let Some(length) = length else { return false };
        let masked = second & MASKED != 0;
        let opcode = first & OPCODE;
        let readable = !masked && first & RESERVED == 0;
        self.last = first & FIN != 0;
        self.left = length.saturating_add(if masked { 4 } else { 0 });
        self.part = match opcode {
            TEXT if readable => {
                self.message = Some(Vec::new());
                Part::Text
            }
            CONTINUATION if readable && self.message.is_some() => Part::Text,
            _ => Part::Other,
        };
        self.head.clear();
        true
    }

    fn take(&mut self, payload: &[u8]) {
        self.left = self.left.saturating_sub(u64::try_from(payload.len()).unwrap_or(u64::MAX));
        if self.part == Part::Text {
            match &mut self.message {
                Some(message) if message.len() + payload.len() <= HELD => message.extend_from_slice(payload),
                message => *message = None,
            }
        }
    }

    fn end(&mut self, each: &mut impl FnMut(&[u8])) {
        if self.part == Part::Text
            && self.last
            && let Some(message) = self.message.take()
        {
            each(&message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            n @ 0..126 => bytes.push(u8::try_from(n).unwrap()),
            n @ 126..65536 => {
                bytes.push(126);
                bytes.extend(u16::try_from(n).unwrap().to_be_bytes());
            }
            n => {
                bytes.push(127);
                bytes.extend(u64::try_from(n).unwrap().to_be_bytes());
            }
        }
        bytes.extend_from_slice(payload);
        bytes
    }

    fn messages(bytes: &[u8], chunk: usize) -> Vec<Vec<u8>> {
        let (mut frames, mut all) = (Frames::default(), Vec::new());
        for part in bytes.chunks(chunk) {
            frames.feed(part, |message| all.push(message.to_vec()));
        }
        all
    }

    #[test]
    fn text_is_read_wherever_it_is_cut_and_whatever_is_between() {
        let long = vec![b'l'; 70_000];
        let middle = vec![b'm'; 300];
        let stream = [
            frame(FIN | TEXT, b"one"),
            frame(FIN | TEXT, b""),
            frame(TEXT, b"two "),
            frame(FIN | 9, b"ping"),
            frame(CONTINUATION, b"parts"),
            frame(FIN | CONTINUATION, b"!"),
            frame(FIN | 2, b"binary"),
            frame(FIN | TEXT, &middle),
            frame(FIN | TEXT, &long),
        ]
        .concat();
        for chunk in [1, 3, 1000, 1 << 20] {
            let all = messages(&stream, chunk);
            let expected: [&[u8]; 5] = [b"one", b"", b"two parts!", &middle, &long];
            assert_eq!(all, expected, "{chunk}");
        }
    }

    #[test]
    fn what_is_compressed_masked_or_too_long_is_passed_over() {
        let mut masked = frame(FIN | TEXT, b"12345678");
        masked[1] = MASKED | 4;
        let stream = [
            frame(FIN | 0x40 | TEXT, b"deflated"),
            masked,
            frame(FIN | TEXT, &vec![b'x'; HELD + 1]),
            frame(FIN | CONTINUATION, b"of nothing"),
            frame(FIN | TEXT, b"last"),
        ]
        .concat();
        assert_eq!(messages(&stream, 1 << 16), [b"last"]);
    }
}
