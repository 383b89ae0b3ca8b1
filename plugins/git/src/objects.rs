//! The objects of a repository, loose and packed. Each object has a size limit, and its contents are checked against its
//! ID.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read};
use std::path::PathBuf;
use std::rc::Rc;

use belljar_guest::{Error, Result};
use flate2::bufread::ZlibDecoder;
use gix_hash::{ObjectId, oid};
use gix_object::Kind;

use crate::chunks::MultiIndex;
use crate::delta;
use crate::pack::{self, Form, Pack};

/// The largest object that is read into memory, in bytes. Applying a delta needs memory for three
/// objects: the base, the delta and the result.
pub(crate) const MAX_OBJECT: u64 = 12 * 1024 * 1024;

/// The size of the cache of unpacked objects, in bytes.
const CACHE_BYTES: usize = 10 * 1024 * 1024;

/// The most packs that are searched one after the other. Each needs an open file.
const MAX_PACKS: usize = 200;

/// About the fuel to find an object, to begin to decompress an entry of a pack, and to decompress or hash one byte.
const LOOKUP_WORK: u64 = 20_000;
const ENTRY_WORK: u64 = 40_000;
const INFLATE_WORK: u64 = 15;
const HASH_WORK: u64 = 25;

/// The longest chain of deltas. Git's default is 50, its maximum 4095.
const MAX_CHAIN: usize = 4096;

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) data: Rc<Vec<u8>>,
}

/// The object store: of the repository, and of the repositories from which it borrows objects.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) hash: gix_hash::Kind,
    /// The directories of loose objects, the repository's own first.
    places: Vec<PathBuf>,
    packs: Vec<Pack>,
    indexes: Vec<Indexed>,
    /// Why objects may be absent, in words for the user.
    gaps: Gaps,
    /// Objects that take the place of others (`git replace`).
    pub(crate) replaced: HashMap<ObjectId, ObjectId>,
    cache: RefCell<Cache>,
    work: Cell<u64>,
}

/// A multi-pack-index, with the numbers of its packs among those of the store.
#[derive(Debug)]
struct Indexed {
    index: MultiIndex,
    packs: Vec<usize>,
}

/// What a store lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gaps {
    /// The filter of a partial clone, such as `blob:none`, and the name of its remote.
    pub(crate) partial: Option<(String, String)>,
    /// True for a shallow clone.
    pub(crate) is_shallow: bool,
    /// Stores that the repository borrows from and that cannot be reached.
    pub(crate) alternates: Vec<String>,
    /// Packs without an index.
    pub(crate) unindexed: Vec<String>,
}

/// Unpacked objects by pack number and offset, for use as bases of further deltas.
#[derive(Debug, Default)]
struct Cache {
    size: usize,
    objects: HashMap<(usize, u64), Object>,
}

impl Objects {
    /// The store in these directories, the repository's own first.
    pub(crate) fn at(places: Vec<PathBuf>, hash: gix_hash::Kind, mut gaps: Gaps) -> Result<Objects> {
        let (mut packs, mut indexes) = (Vec::new(), Vec::new());
        for place in &places {
            let listed = pack::list(place)?;
            let first = packs.len();
            packs.extend(listed.indexes.into_iter().map(|index| Pack::at(index, hash)));
            gaps.unindexed.extend(listed.unindexed);
            if listed.is_promised && gaps.partial.is_none() {
                gaps.partial = Some(("unknown".to_owned(), "origin".to_owned()));
            }
            // With one pack, its own index is as good.
            let own: Vec<String> = packs.iter().skip(first).map(Pack::name).collect();
            if let Some(index) = (own.len() > 1).then(|| MultiIndex::of(place, hash)).flatten() {
                let number = |name: &String| own.iter().position(|own| own == name).map(|at| first + at);
                if let Some(packs) = index.packs.iter().map(number).collect() {
                    indexes.push(Indexed { index, packs });
                }
            }
        }
        let covered: HashSet<usize> = indexes.iter().flat_map(|indexed| indexed.packs.iter().copied()).collect();
        if packs.len() - covered.len() > MAX_PACKS {
            return Err(Error::failed(format_args!(
                "the repository has {} packs, more than {MAX_PACKS} without a multi-pack-index; run  git gc",
                packs.len()
            )));
        }
        Ok(Objects {
            hash,
            places,
            packs,
            indexes,
            gaps,
            replaced: HashMap::new(),
            cache: RefCell::default(),
            work: Cell::new(0),
        })
    }

    /// An object, or `None` if the repository does not contain it.
    pub(crate) fn find(&self, id: &oid) -> Result<Option<Object>> {
        let id = self.replaced.get(id).map_or(id, |other| other);
        let Some(object) = self.find_unchecked(id)? else { return Ok(None) };
        self.check(id, &object)?;
        Ok(Some(object))
    }

    /// Checks the contents of an object against its ID.
    pub(crate) fn check(&self, id: &oid, object: &Object) -> Result<()> {
        let id = self.replaced.get(id).map_or(id, |other| other);
        self.add_work(object.data.len() as u64 * HASH_WORK);
        let actual = gix_object::compute_hash(self.hash, object.kind, &object.data);
        if actual.is_ok_and(|actual| *actual == *id) {
            return Ok(());
        }
        Err(Error::failed(format_args!("the object {id} is damaged: its contents do not match its ID; run  git fsck")))
    }

    /// Like [`find`](Objects::find), without a check of the contents against the ID. For searches, whose answers do not
    /// show the contents.
    pub(crate) fn find_unchecked(&self, id: &oid) -> Result<Option<Object>> {
        let id = self.replaced.get(id).map_or(id, |other| other);
        self.add_work(LOOKUP_WORK);
        Ok(match self.packed(id)? {
            Some((pack, offset)) => Some(self.unpack(pack, offset)?),
            None => self.loose(id)?,
        })
    }

    /// An object that must exist, because another object or reference names it.
    pub(crate) fn get(&self, id: &oid) -> Result<Object> {
        self.find(id)?.ok_or_else(|| self.missing(id))
    }

    /// About the fuel that was used so far for unpacking objects.
    pub(crate) fn work(&self) -> u64 {
        self.work.get()
    }

    /// Counts work that was done outside of this module.
    pub(crate) fn add_work(&self, work: u64) {
        self.work.set(self.work.get().saturating_add(work));
    }

    /// What the store lacks.
    pub(crate) fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// True if the repository contains the object.
    pub(crate) fn contains(&self, id: &oid) -> Result<bool> {
        let hex = id.to_hex().to_string();
        let (directory, rest) = hex.split_at_checked(2).unwrap_or_default();
        Ok(self.packed(id)?.is_some() || self.places.iter().any(|place| place.join(directory).join(rest).is_file()))
    }

    /// The error for an object that should exist.
    pub(crate) fn missing(&self, id: &oid) -> Error {
        Error::failed(format_args!("the object {id} is absent: {}", self.gaps.reason()))
    }

    /// Kind and size in bytes, without unpacking the object.
    pub(crate) fn header(&self, id: &oid) -> Result<Option<(Kind, u64)>> {
        let id = self.replaced.get(id).map_or(id, |other| other);
        self.add_work(LOOKUP_WORK);
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

    /// The objects whose IDs begin with these hex digits.
    pub(crate) fn begin_with(&self, prefix: &str) -> Result<Vec<ObjectId>> {
        const MAX_FOUND: usize = 20;
        let mut found = Vec::new();
        for pack in &self.packs {
            found.extend(pack.begin_with(prefix, MAX_FOUND)?);
        }
        let (directory, rest) = prefix.split_at_checked(2).unwrap_or((prefix, ""));
        // So many digits are nearly always one object.
        let is_certain = prefix.len() >= 12 && !found.is_empty();
        for place in self.places.iter().filter(|_| !is_certain) {
            let Ok(entries) = fs::read_dir(place.join(directory)) else { continue };
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let names = names.filter(|name| name.starts_with(rest)).take(MAX_FOUND);
            found.extend(names.filter_map(|name| ObjectId::from_hex(format!("{directory}{name}").as_bytes()).ok()));
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    pub(crate) fn pack(&self, number: usize) -> Result<&Pack> {
        self.packs.get(number).ok_or(Error::NotFound)
    }

    /// The number of the pack that has an object, and the offset of the object in it.
    pub(crate) fn packed(&self, id: &oid) -> Result<Option<(usize, u64)>> {
        for Indexed { index, packs } in &self.indexes {
            if let Some((number, offset)) = index.find(id)
                && let Some(pack) = packs.get(number)
            {
                return Ok(Some((*pack, offset)));
            }
        }
        let is_indexed = |number| self.indexes.iter().any(|indexed| indexed.packs.contains(&number));
        for (number, pack) in self.packs.iter().enumerate() {
            if !self.indexes.is_empty() && is_indexed(number) {
                continue;
            }
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
            self.add_work(ENTRY_WORK + data.len() as u64 * INFLATE_WORK);
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
            self.add_work(data.len() as u64);
            object = Object { kind: object.kind, data: Rc::new(data) };
            self.cache((pack, offset), &object);
        }
        Ok(object)
    }

    fn cache(&self, place: (usize, u64), object: &Object) {
        let mut cache = self.cache.borrow_mut();
        if object.data.len() > CACHE_BYTES / 2 {
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
        self.add_work(size * INFLATE_WORK);
        Ok(Some(Object { kind, data: Rc::new(data) }))
    }

    /// A loose object: its kind, its size in bytes, and a stream of its data.
    pub(crate) fn loose_stream(&self, id: &oid) -> Result<Option<Loose<File>>> {
        let hex = id.to_hex().to_string();
        let (directory, rest) = hex.split_at(2);
        for place in &self.places {
            let file = match File::open(place.join(directory).join(rest)) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file?,
            };
            return open_loose(file).map(Some).ok_or_else(|| damaged(id));
        }
        Ok(None)
    }
}

impl Gaps {
    /// Why an object is absent, and the cure.
    pub(crate) fn reason(&self) -> String {
        if let Some(alternate) = self.alternates.first() {
            return format!(
                "the repository borrows objects from \"{alternate}\" (objects/info/alternates), which cannot be reached \
                 from the granted directory; grant a directory that has both, or run  git repack -a -d  and remove that file"
            );
        }
        if let Some((filter, remote)) = &self.partial {
            return format!(
                "the repository is a partial clone (filter {filter}), and the remote \"{remote}\" has the object \
                 (promisor); run  git fetch --refetch --no-filter {remote}  to get all objects"
            );
        }
        if let Some(pack) = self.unindexed.first() {
            return format!("the pack \"{pack}\" has no index; run  git index-pack objects/pack/{pack}");
        }
        match self.is_shallow {
            true => "the repository is a shallow clone; run  git fetch --unshallow".to_owned(),
            false => "the repository is damaged; run  git fsck".to_owned(),
        }
    }
}

/// A loose object: its kind, its size in bytes, and a stream of its data.
pub(crate) type Loose<R> = (Kind, u64, ZlibDecoder<BufReader<R>>);

/// Reads the header of a loose object.
pub(crate) fn open_loose<R: Read>(file: R) -> Option<Loose<R>> {
    let mut stream = ZlibDecoder::new(BufReader::with_capacity(4096, file));
    let mut head = Vec::new();
    let mut byte = [0];
    while head.len() < 32 && stream.read_exact(&mut byte).is_ok() && byte != [0] {
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let (kind, size) = head.split_once(' ').filter(|_| byte == [0])?;
    Some((Kind::from_bytes(kind.as_bytes()).ok()?, size.parse().ok()?, stream))
}

fn damaged(id: &oid) -> Error {
    Error::failed(format_args!("the object {id} is damaged; run  git fsck"))
}

fn too_large(size: u64) -> Error {
    Error::failed(format_args!("the object has {size} bytes, the limit for unpacking is {MAX_OBJECT}"))
}
