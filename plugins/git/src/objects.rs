//! The objects of a repository, loose and packed. Each object has a size limit, and its contents are checked against its
//! ID.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use belljar_guest::{Error, Result};
use flate2::bufread::ZlibDecoder;
use gix_hash::{ObjectId, oid};
use gix_object::{Data, Kind};

use crate::delta;
use crate::pack::{self, Form, Pack};

/// The largest object that is read into memory, in bytes. Applying a delta needs memory for three
/// objects: the base, the delta and the result.
pub(crate) const MAX_OBJECT: u64 = 12 * 1024 * 1024;

/// The size of the cache of unpacked objects, in bytes.
const CACHE_BYTES: usize = 6 * 1024 * 1024;

/// The longest chain of deltas. Git's default is 50, its maximum 4095.
const MAX_CHAIN: usize = 4096;

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) data: Rc<Vec<u8>>,
}

/// The object store.
#[derive(Debug)]
pub(crate) struct Objects {
    place: PathBuf,
    packs: Vec<Pack>,
    cache: RefCell<Cache>,
}

/// Unpacked objects by pack number and offset, for use as bases of further deltas.
#[derive(Debug, Default)]
struct Cache {
    size: usize,
    objects: HashMap<(usize, u64), Object>,
}

impl Objects {
    /// The store in the directory `objects` of a repository.
    pub(crate) fn at(place: PathBuf) -> Result<Objects> {
        Ok(Objects { packs: pack::all(&place)?, place, cache: RefCell::default() })
    }

    /// An object, or `None` if the repository does not contain it.
    pub(crate) fn find(&self, id: &oid) -> Result<Option<Object>> {
        let object = match self.packed(id)? {
            Some((pack, offset)) => self.unpack(pack, offset)?,
            None => match self.loose(id)? {
                Some(object) => object,
                None => return Ok(None),
            },
        };
        let actual = gix_object::compute_hash(gix_hash::Kind::Sha1, object.kind, &object.data);
        if actual.is_ok_and(|actual| *actual == *id) {
            return Ok(Some(object));
        }
        Err(Error::failed(format_args!("the object {id} is damaged: its contents do not match its ID; run  git fsck")))
    }

    /// An object that must exist, because another object or reference names it.
    pub(crate) fn get(&self, id: &oid) -> Result<Object> {
        self.find(id)?.ok_or_else(|| self.missing(id))
    }

    /// The error for an object that should exist.
    pub(crate) fn missing(&self, id: &oid) -> Error {
        if fs::metadata(self.place.join("info/alternates")).is_ok_and(|meta| meta.len() > 0) {
            return Error::failed(format_args!(
                "the object {id} is missing: the repository borrows objects from another one (objects/info/alternates), \
                 which is not supported; run  git repack -a -d  and remove that file"
            ));
        }
        Error::failed(format_args!(
            "the object {id} is missing: the repository is a partial or shallow clone, or damaged; run  git fsck"
        ))
    }

    /// Kind and size in bytes, without unpacking the object.
    pub(crate) fn header(&self, id: &oid) -> Result<Option<(Kind, u64)>> {
        let Some((mut pack, mut offset)) = self.packed(id)? else {
            return Ok(self.loose_stream(id)?.map(|(kind, size, _)| (kind, size)));
        };
        let mut size = None;
        for _ in 0..MAX_CHAIN {
            let of = self.pack(pack)?;
            let entry = of.entry(offset)?;
            if size.is_none() {
                size = Some(match entry.form {
                    Form::Whole(_) => entry.size,
                    _ => {
                        let mut head = Vec::new();
                        of.stream(&entry)?
                            .take(20)
                            .read_to_end(&mut head)
                            .map_err(|_| of.damaged("a delta in it cannot be decompressed"))?;
                        delta::sizes(&head).ok_or_else(|| of.damaged("a delta in it has a malformed header"))?.1
                    }
                });
            }
            match entry.form {
                Form::Whole(kind) => return Ok(size.map(|size| (kind, size))),
                Form::Offset(base) => offset = base,
                Form::Reference(base) => {
                    (pack, offset) = self.packed(&base)?.ok_or_else(|| of.damaged("a delta in it has no base"))?;
                }
            }
        }
        Err(self.pack(pack)?.damaged("its deltas form a cycle"))
    }

    /// A part of an object of any size. `None` if the object is stored as a delta, which can only be unpacked as a whole.
    pub(crate) fn part(&self, id: &oid, offset: u64, length: u64) -> Result<Option<Vec<u8>>> {
        let mut part = Vec::new();
        let mut cut = |mut stream: Box<dyn Read + '_>| -> Result<()> {
            std::io::copy(&mut stream.by_ref().take(offset), &mut std::io::sink())?;
            stream.take(length).read_to_end(&mut part)?;
            Ok(())
        };
        match self.packed(id)? {
            Some((pack, at)) => {
                let pack = self.pack(pack)?;
                let entry = pack.entry(at)?;
                if !matches!(entry.form, Form::Whole(_)) {
                    return Ok(None);
                }
                cut(Box::new(pack.stream(&entry)?))?;
            }
            None => match self.loose_stream(id)? {
                Some((.., stream)) => cut(Box::new(stream))?,
                None => return Ok(None),
            },
        }
        Ok(Some(part))
    }

    /// The objects whose IDs begin with these hex digits.
    pub(crate) fn begin_with(&self, prefix: &str) -> Result<Vec<ObjectId>> {
        const MAX_FOUND: usize = 20;
        let mut found = Vec::new();
        for pack in &self.packs {
            found.extend(pack.begin_with(prefix, MAX_FOUND)?);
        }
        let (directory, rest) = prefix.split_at_checked(2).unwrap_or((prefix, ""));
        if let Ok(entries) = fs::read_dir(self.place.join(directory)) {
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let names = names.filter(|name| name.starts_with(rest)).take(MAX_FOUND);
            found.extend(names.filter_map(|name| ObjectId::from_hex(format!("{directory}{name}").as_bytes()).ok()));
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn pack(&self, number: usize) -> Result<&Pack> {
        self.packs.get(number).ok_or(Error::NotFound)
    }

    fn packed(&self, id: &oid) -> Result<Option<(usize, u64)>> {
        for (number, pack) in self.packs.iter().enumerate() {
            if let Some(offset) = pack.find(id)? {
                return Ok(Some((number, offset)));
            }
        }
        Ok(None)
    }

    /// Unpacks the object at an offset of a pack: follows the deltas down to their base, then applies them in reverse.
    fn unpack(&self, mut pack: usize, mut offset: u64) -> Result<Object> {
        let mut deltas: Vec<(usize, u64, Vec<u8>)> = Vec::new();
        let mut seen = HashSet::new();
        let mut held = 0;
        let mut object = loop {
            if let Some(object) = self.cache.borrow().objects.get(&(pack, offset)) {
                break object.clone();
            }
            let of = self.pack(pack)?;
            if !seen.insert((pack, offset)) || deltas.len() > MAX_CHAIN {
                return Err(of.damaged("its deltas form a cycle"));
            }
            let entry = of.entry(offset)?;
            held += entry.size;
            if held > MAX_OBJECT {
                return Err(too_large(held));
            }
            let data = of.data(&entry)?;
            let here = (pack, offset);
            match entry.form {
                Form::Whole(kind) => {
                    let object = Object { kind, data: Rc::new(data) };
                    self.cache(here, &object);
                    break object;
                }
                Form::Offset(base) => offset = base,
                Form::Reference(base) => {
                    (pack, offset) = self.packed(&base)?.ok_or_else(|| of.damaged("a delta in it has no base"))?;
                }
            }
            deltas.push((here.0, here.1, data));
        };
        while let Some((pack, offset, delta)) = deltas.pop() {
            if let Some((_, size, _)) = delta::sizes(&delta).filter(|(_, size, _)| *size > MAX_OBJECT) {
                return Err(too_large(size));
            }
            let data = delta::apply(&object.data, &delta, MAX_OBJECT);
            let data =
                data.ok_or(()).or_else(|()| Err(self.pack(pack)?.damaged("a delta in it does not match its base")))?;
            object = Object { kind: object.kind, data: Rc::new(data) };
            self.cache((pack, offset), &object);
        }
        Ok(object)
    }

    fn cache(&self, place: (usize, u64), object: &Object) {
        let mut cache = self.cache.borrow_mut();
        if object.data.len() > CACHE_BYTES / 8 {
            return;
        }
        if cache.size + object.data.len() > CACHE_BYTES {
            *cache = Cache::default();
        }
        cache.size += object.data.len();
        cache.objects.insert(place, object.clone());
    }

    fn loose(&self, id: &oid) -> Result<Option<Object>> {
        let Some((kind, size, stream)) = self.loose_stream(id)? else { return Ok(None) };
        if size > MAX_OBJECT {
            return Err(too_large(size));
        }
        let mut data = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        let read = stream.take(size + 1).read_to_end(&mut data);
        if read.is_err() || data.len() as u64 != size {
            return Err(damaged(id));
        }
        Ok(Some(Object { kind, data: Rc::new(data) }))
    }

    /// A loose object: its kind, its size in bytes, and a stream of its data.
    fn loose_stream(&self, id: &oid) -> Result<Option<(Kind, u64, impl Read + use<>)>> {
        let hex = id.to_hex().to_string();
        let (directory, rest) = hex.split_at(2);
        let file = match File::open(self.place.join(directory).join(rest)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut stream = ZlibDecoder::new(BufReader::with_capacity(4096, file));
        let mut head = Vec::new();
        let mut byte = [0];
        while head.len() < 32 && stream.read_exact(&mut byte).is_ok() && byte != [0] {
            head.extend(byte);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let parsed = head.split_once(' ').filter(|_| byte == [0]);
        let (kind, size) = parsed.ok_or_else(|| damaged(id))?;
        let kind = Kind::from_bytes(kind.as_bytes()).map_err(|_| damaged(id))?;
        Ok(Some((kind, size.parse().map_err(|_| damaged(id))?, stream)))
    }
}

impl gix_object::Find for Objects {
    fn try_find<'a>(&self, id: &oid, buffer: &'a mut Vec<u8>) -> Result<Option<Data<'a>>, gix_error::Error> {
        let Some(object) = self.find(id).map_err(gix_error::Error::from_error)? else { return Ok(None) };
        buffer.clear();
        buffer.extend_from_slice(&object.data);
        Ok(Some(Data::new(buffer, object.kind, gix_hash::Kind::Sha1)))
    }
}

fn damaged(id: &oid) -> Error {
    Error::failed(format_args!("the object {id} is damaged; run  git fsck"))
}

fn too_large(size: u64) -> Error {
    Error::failed(format_args!("the object has {size} bytes, the limit for unpacking is {MAX_OBJECT}"))
}

/// True if a directory has a directory `objects`.
pub(crate) fn are_in(place: &Path) -> bool {
    fs::metadata(place.join("objects")).is_ok_and(|meta| meta.is_dir())
}
