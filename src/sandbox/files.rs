//! Files of a sandbox's workspace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::contract::types::{
    DirectoryListing, FileContent, FileEncoding, FileMode, FilePath, FileWritten, ReadFile,
    WriteFile,
};
use crate::contract::{limits, routes};
use crate::transport::{Call as Sent, Repeat};

use super::call::Call;
use super::error::Error;
use super::handle::Sandbox;
use super::inner::Inner;
use super::state::Ready;

impl<S> Sandbox<S> {
    /// Reads a file whole, at most 4 MiB.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND`, `FORBIDDEN` outside the sandbox, `FILE_TOO_LARGE`. See the wire protocol, 13.2.
    pub fn read(&self, path: &str) -> Call<'_, Vec<u8>>
    where
        S: Ready,
    {
        let (inner, path) = (self.inner().clone(), FilePath::new(path));
        Call::new(async move { decode(read(&inner, path?, FileEncoding::Base64).await?) })
    }

    /// Reads a UTF-8 file whole, at most 4 MiB.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); `VALIDATION_ERROR` when the bytes are not UTF-8.
    pub fn read_text(&self, path: &str) -> Call<'_, String>
    where
        S: Ready,
    {
        let (inner, path) = (self.inner().clone(), FilePath::new(path));
        Call::new(async move {
            let bytes = decode(read(&inner, path?, FileEncoding::Utf8).await?)?;
            String::from_utf8(bytes)
                .map_err(|_| Error::protocol("read", "the content is not UTF-8"))
        })
    }

    /// Writes a file whole; missing directories are made, an old file is replaced at once. The mode is 0644.
    ///
    /// # Errors
    ///
    /// `FORBIDDEN` outside the workspace, `PAYLOAD_TOO_LARGE`. See the wire protocol, 13.2.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Call<'_, FileWritten>
    where
        S: Ready,
    {
        self.put(path, content.as_ref(), None)
    }

    /// Writes a file whole with these mode bits, for example `0o755`.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write); `VALIDATION_ERROR` for bits above `0o777`.
    pub fn write_with_mode(
        &self,
        path: &str,
        content: impl AsRef<[u8]>,
        mode: u16,
    ) -> Call<'_, FileWritten>
    where
        S: Ready,
    {
        self.put(path, content.as_ref(), Some(mode))
    }

    /// A directory: its entries, sorted by name, those that begin with a dot included; and what is there but cannot be
    /// named in a request, with the reason (`excluded`). `.` is the workspace, and relative paths begin there.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND`, `FORBIDDEN` outside the sandbox. See the wire protocol, 13.3.
    pub fn list(&self, path: &str) -> Call<'_, DirectoryListing>
    where
        S: Ready,
    {
        let (inner, path) = (self.inner().clone(), FilePath::new(path));
        Call::new(async move {
            let path = route_tail(&path?);
            let call = Sent::new(&routes::FS_LIST, &[("id", inner.id()), ("path", &path)])
                .query("all", "true")
                .query("long", "true");
            Ok(inner.transport.json(call).await?)
        })
    }

    fn put(&self, path: &str, content: &[u8], mode: Option<u16>) -> Call<'_, FileWritten> {
        let inner = self.inner().clone();
        let request = write_request(path, content, mode);
        Call::new(async move {
            // The whole file is replaced, so that a second write has the effect of one; but a write that was overtaken
            // by another must not come back, hence no repeat.
            let call = inner.call(&routes::FILES_WRITE).body(&request?);
            Ok(inner.transport.json(call).await?)
        })
    }
}

/// A path for the URL, where a segment `.` cannot stand: `.` is the workspace itself.
fn route_tail(path: &str) -> String {
    let mut segments = path.split('/').filter(|segment| *segment != ".");
    let first = segments.next().unwrap_or_default().to_owned();
    let plain = segments.fold(first, |path, segment| path + "/" + segment);
    // The tail follows a slash of the route: only a second one makes it absolute.
    match path.starts_with('/') {
        true => format!("/{plain}"),
        false => plain,
    }
}

fn write_request(path: &str, content: &[u8], mode: Option<u16>) -> Result<WriteFile, Error> {
    let (content, encoding) = match std::str::from_utf8(content) {
        Ok(text) => (text.to_owned(), FileEncoding::Utf8),
        Err(_) => (STANDARD.encode(content), FileEncoding::Base64),
    };
    Ok(WriteFile {
        path: FilePath::new(path)?,
        content,
        encoding: Some(encoding),
        mode: mode.map(FileMode::try_from).transpose()?,
    })
}

async fn read(inner: &Inner, path: FilePath, encoding: FileEncoding) -> Result<FileContent, Error> {
    let request = ReadFile {
        path,
        encoding: Some(encoding),
    };
    let call = inner
        .call(&routes::FILES_READ)
        .body(&request)
        .repeat(Repeat::Safe)
        // Six bytes for one are the worst that JSON text makes of a byte.
        .answer_limit(6 * limits::MAX_READ + limits::MAX_ERROR_BODY);
    Ok(inner.transport.json(call).await?)
}

fn decode(content: FileContent) -> Result<Vec<u8>, Error> {
    let bytes = match content.encoding {
        FileEncoding::Utf8 => content.content.into_bytes(),
        FileEncoding::Base64 => STANDARD
            .decode(&content.content)
            .map_err(|_| Error::protocol("read", "the content is not base64"))?,
    };
    match bytes.len() as u64 == content.size.get() {
        true => Ok(bytes),
        false => Err(Error::protocol(
            "read",
            "the content has another size than the answer says",
        )),
    }
}
