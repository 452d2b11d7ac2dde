// Package of13 is the OpenFlow 1.3.5 protocol on the wire, both directions.
//
// Each message has one description of its layout (method layout), by which it
// is read and written, so the two directions cannot differ. A Decoder reuses
// its messages: a message it returned, and what that refers to, is valid until
// its next Decode, and byte slices in it are parts of the bytes received.
//
// What a message gets wrong is an Error: type and code of the specification,
// as they stand in the reply. Checks here are those that need no state: lengths,
// types, fields of a match and their prerequisites. Whether a table, port or
// group exists is decided by openflow/pipeline.
package of13

// Version is that of OpenFlow 1.3 in headers.
const Version = 4

// HeaderLen is the length of a header, in bytes.
const HeaderLen = 8

// MaxLen is the largest message: its length has 16 bits.
const MaxLen = 65535
