package nsh

import (
	"encoding/binary"
	"hash/fnv"
	"net"
)

// noBackend stands in a table of choices where nobody can be chosen.
const noBackend = 255

func balancerRow(f Function) nshBalancer {
	service := f.Service.Addr().As4()
	row := nshBalancer{Address: binary.NativeEndian.Uint32(service[:]), Port: f.Service.Port(), Count: uint16(len(f.Backends)), Target: f.Target}
	for i, b := range f.Backends {
		a := b.Address.As4()
		to := nshBackend{Address: binary.NativeEndian.Uint32(a[:]), Down: flag(b.Down)}
		if b.Path != 0 {
			to.At = rowKey(b.Path, b.Index)
		}
		if mac, err := net.ParseMAC(b.Ethernet); err == nil {
			to.Writes = 1
			copy(to.Mac[:], mac)
		}
		row.Backends[i] = to
	}
	for i := range row.Choices {
		row.Choices[i] = noBackend
	}
	copy(row.Choices[:], choices(f.Backends))
	return row
}

const size = len(nshBalancer{}.Choices) - 5 // CHOICES, a prime

// choices fills the table of Maglev hashing (Eisenbud et al., NSDI 2016, section
// 3.4): each backend that is up takes places in an order of its own, by turns. When
// one comes or goes, few places of the others change.
func choices(backends []Backend) []byte {
	table := make([]byte, size)
	for i := range table {
		table[i] = noBackend
	}
	type turn struct{ at, step int }
	turns := make(map[int]*turn)
	for i, b := range backends {
		if b.Down {
			continue
		}
		h := fnv.New64a()
		h.Write(b.Address.AsSlice())
		n := h.Sum64()
		turns[i] = &turn{int(n % uint64(size)), int(n>>32%uint64(size-1)) + 1}
	}
	for left := size; left > 0 && len(turns) > 0; {
		for i := range backends {
			t := turns[i]
			if t == nil || left == 0 {
				continue
			}
			for table[t.at] != noBackend {
				t.at = (t.at + t.step) % size
			}
			table[t.at] = byte(i)
			left--
		}
	}
	return table
}
