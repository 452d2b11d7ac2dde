package plan

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sublet/vnet"
)

// TunnelTable is a table of tunnels of the operator's own on one host: packets that
// come in by a device go to the host that the table has for some of their bits. Leases
// know nothing of it, and no plan has it: datapath/overlay keeps it.
type TunnelTable struct {
	TableHead
	Entries []TunnelEntry `json:"entries"`
}

// TableHead is a table without its entries.
type TableHead struct {
	Name          string             `json:"name"`
	Device        string             `json:"device"` // one end of a pair; what came by a tunnel leaves by the other end
	Encapsulation vnet.Encapsulation `json:"encapsulation"`
	Number        vnet.VNI           `json:"number,omitempty"` // of its packets, for protocols that have one
	Interface     string             `json:"interface"`        // physical
	Local         netip.Addr         `json:"local"`
	// Where packets have their identifier: bytes from the start of the Ethernet header,
	// and bits; 0 bits: all packets go by the one entry there is.
	Offset  int  `json:"offset"`
	Bits    int  `json:"bits"`
	Longest bool `json:"longest,omitempty"` // match the longest prefix, not all bits
}

// TunnelEntry says where packets with an identifier go.
type TunnelEntry struct {
	ID Identifier `json:"id"`
	To netip.Addr `json:"to"`
}

// TableChange is a change of one table, all or nothing.
type TableChange struct {
	Table   string        `json:"table"`
	Do      TableOp       `json:"do"`
	Set     *TunnelTable  `json:"set,omitempty"`     // of TableSet
	Entries []TunnelEntry `json:"entries,omitempty"` // of TableAdd and TableReplace
	IDs     []Identifier  `json:"ids,omitempty"`     // of TableDelete
}

// TableOp is what a TableChange does.
type TableOp string

// Changes: a table with its entries as stated, whatever there was; entries more;
// entries fewer; these entries and no others; no table.
const (
	TableSet     TableOp = "set"
	TableAdd     TableOp = "add"
	TableDelete  TableOp = "delete"
	TableReplace TableOp = "replace"
	TableRemove  TableOp = "remove"
)

// Bounds of a host's tables, all together but for the offset.
const (
	MaxTunnelTables  = 64
	MaxTunnelEntries = 1 << 16
	MaxTunnelEnds    = 4096      // different addresses
	MaxTunnelNumber  = 1<<20 - 1 // those above are leases'
	maxTunnelOffset  = 255
	maxIdentifier    = 128
)

// BadTable is that a change makes no table that can be.
type BadTable struct{ Err error }

func (b BadTable) Error() string { return b.Err.Error() }

// ErrTableConflict is that a change does not go with what is there.
var ErrTableConflict = errors.New("conflict")

// ErrNoTable is that there is no such table.
var ErrNoTable = errors.New("no such table")

// Change is the table after a change; nil: there is none. The table itself stays.
func (t *TunnelTable) Change(c TableChange) (*TunnelTable, error) {
	if c.Do == TableSet && c.Set != nil {
		set := *c.Set
		set.Name = c.Table
		return &set, bad(set.Check())
	}
	if t == nil {
		return nil, fmt.Errorf("%w: %q", ErrNoTable, c.Table)
	}
	next := *t
	switch c.Do {
	case TableRemove:
		return nil, nil
	case TableReplace:
		next.Entries = c.Entries
	case TableAdd:
		have := t.byID()
		for _, e := range c.Entries {
			if to, there := have[e.ID]; there {
				return nil, fmt.Errorf("%w: %s goes to %s already", ErrTableConflict, e.ID, to)
			}
		}
		next.Entries = append(slices.Clone(t.Entries), c.Entries...)
	case TableDelete:
		gone := make(map[Identifier]bool, len(c.IDs))
		have := t.byID()
		for _, id := range c.IDs {
			if _, there := have[id]; !there {
				return nil, fmt.Errorf("%w: there is no entry %s", ErrTableConflict, id)
			}
			gone[id] = true
		}
		next.Entries = slices.DeleteFunc(slices.Clone(t.Entries), func(e TunnelEntry) bool { return gone[e.ID] })
	default:
		return nil, BadTable{Err: fmt.Errorf("do %q: there are set, add, delete, replace and remove", c.Do)}
	}
	return &next, bad(next.Check())
}

func bad(err error) error {
	if err == nil {
		return nil
	}
	return BadTable{Err: err}
}

func (t *TunnelTable) byID() map[Identifier]netip.Addr {
	all := make(map[Identifier]netip.Addr, len(t.Entries))
	for _, e := range t.Entries {
		all[e.ID] = e.To
	}
	return all
}

// Numbered says whether packets of a protocol bear the number of their tunnel.
func Numbered(e vnet.Encapsulation) bool {
	return slices.Contains([]vnet.Encapsulation{vnet.VXLAN, vnet.NSH, vnet.Geneve, vnet.NVGRE, vnet.LISP, vnet.KernelVXLAN}, e)
}

// Check says what is wrong with a table, if anything.
func (t *TunnelTable) Check() error {
	protocols := []vnet.Encapsulation{vnet.VXLAN, vnet.NSH, vnet.Geneve, vnet.NVGRE, vnet.GRETAP, vnet.GRE, vnet.IPIP, vnet.GUE, vnet.LISP, vnet.KernelVXLAN}
	switch {
	case vnet.CheckName(t.Name) != nil:
		return fmt.Errorf("table %w", vnet.CheckName(t.Name))
	case !slices.Contains(protocols, t.Encapsulation):
		return fmt.Errorf("encapsulation %q: choose of %v", t.Encapsulation, protocols)
	case Numbered(t.Encapsulation) && (t.Number < 1 || t.Number > MaxTunnelNumber):
		return fmt.Errorf("number %d: %s has one from 1 to %d, above are those of leases", t.Number, t.Encapsulation, MaxTunnelNumber)
	case !Numbered(t.Encapsulation) && t.Number != 0:
		return fmt.Errorf("number %d: packets of %s bear none, leave it out", t.Number, t.Encapsulation)
	case !device(t.Device) || !device(t.Interface) || t.Device == t.Interface:
		return fmt.Errorf("device %q and interface %q: state two different devices of the host", t.Device, t.Interface)
	case strings.HasPrefix(t.Device, trunkPrefix):
		return fmt.Errorf("device %q: names that begin with %q are Sublet's own", t.Device, trunkPrefix)
	case !isUnicast(t.Local):
		return fmt.Errorf("local %s: state an address of the host", t.Local)
	case t.Offset < 0 || t.Offset > maxTunnelOffset:
		return fmt.Errorf("offset %d: state bytes from 0 to %d", t.Offset, maxTunnelOffset)
	case t.Bits < 0 || t.Bits > maxIdentifier:
		return fmt.Errorf("bits %d: state 0 to %d", t.Bits, maxIdentifier)
	case len(t.Entries) > MaxTunnelEntries:
		return fmt.Errorf("%d entries are more than %d", len(t.Entries), MaxTunnelEntries)
	}
	return t.checkEntries()
}

func (t *TunnelTable) checkEntries() error {
	seen := make(map[Identifier]bool, len(t.Entries))
	for _, e := range t.Entries {
		switch {
		case t.Longest && e.ID.Bits > t.Bits, !t.Longest && e.ID.Bits != t.Bits:
			return fmt.Errorf("entry %s has %d bits, where the table matches %d", e.ID, e.ID.Bits, t.Bits)
		case !isUnicast(e.To) || e.To.Is4() != t.Local.Is4():
			return fmt.Errorf("entry %s goes to %s: state an address of another host, of the IP version of %s", e.ID, e.To, t.Local)
		case e.To == t.Local:
			return fmt.Errorf("entry %s goes to %s, which is this host", e.ID, e.To)
		case seen[e.ID]:
			return fmt.Errorf("entry %s is stated twice", e.ID)
		}
		seen[e.ID] = true
	}
	return nil
}

// isUnicast says whether an address is that of one machine.
func isUnicast(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6() && a.Zone() == "" && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func device(name string) bool {
	return name != "" && len(name) <= 15 && !strings.ContainsAny(name, "/ %\t\n\x00") && name != "." && name != ".."
}

// Identifier is what packets are told apart by: Bits of Bytes, the first ones.
type Identifier struct {
	Bytes [16]byte
	Bits  int
}

// String is its digits in hexadecimal and its bits: 020000000001/48.
func (i Identifier) String() string {
	return fmt.Sprintf("%s/%d", hex.EncodeToString(i.Bytes[:(i.Bits+7)/8]), i.Bits)
}

// MarshalText is String.
func (i Identifier) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads hexadecimal digits, a MAC address, an IP address, or "default",
// and, behind a slash, how many bits count: 10.1.0.0/16, 02:00:00:00:00:01, 12345/20.
func (i *Identifier) UnmarshalText(text []byte) error {
	word, length, short := strings.Cut(string(text), "/")
	*i = Identifier{}
	if string(text) == "default" || word == "" && length == "0" {
		return nil
	}
	bits, b := digits(word)
	if bits < 0 {
		return fmt.Errorf("%q is no identifier: write hexadecimal digits, a MAC address, an IP address or prefix, or default", text)
	}
	i.Bits = bits
	if short {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > bits {
			return fmt.Errorf("%q: state from 0 to %d bits behind the slash", text, bits)
		}
		i.Bits = n
	}
	copy(i.Bytes[:], b)
	for at := i.Bits; at < 8*len(i.Bytes); at++ {
		if i.Bytes[at/8]>>(7-at%8)&1 != 0 {
			return fmt.Errorf("%q has bits behind its length of %d: make them 0", text, i.Bits)
		}
	}
	return nil
}

// digits are the bits of a word, which is none of the forms if they are negative.
func digits(word string) (bits int, b []byte) {
	if groups := strings.Split(word, ":"); len(groups) == 6 && !slices.ContainsFunc(groups, func(g string) bool { return len(g) != 2 }) {
		word = strings.Join(groups, "")
	}
	if a, err := netip.ParseAddr(word); err == nil && a.Zone() == "" {
		return a.BitLen(), a.AsSlice()
	}
	word = strings.TrimPrefix(word, "0x")
	bits = 4 * len(word)
	if bits == 0 || bits > maxIdentifier {
		return -1, nil
	}
	b, err := hex.DecodeString(word + strings.Repeat("0", len(word)%2))
	if err != nil {
		return -1, nil
	}
	return bits, b
}
