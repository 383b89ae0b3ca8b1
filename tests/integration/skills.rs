//! Skills (SEP-2640): lists with digests, single skills, directories, and files by their second names.

mod serving;
