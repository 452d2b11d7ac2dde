package live

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/xsk"
	"sublet/vnet"
)

// BenchmarkFrames is what a frame of 60 bytes costs the loop from one ring to
// another, without the kernel: both lookups, queue, schedulers, capacities, two
// copies.
func BenchmarkFrames(b *testing.B) {
	text := "ports: [{name: a, xdp: a}, {name: b, xdp: b}]\nvirtual_switches:\n- {name: one, buffer: 4MiB, ports: [{port: a, in: 90Gbit, out: 90Gbit}, {port: b, in: 90Gbit, out: 90Gbit}]}\n"
	c, err := Parse("bench", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	h, err := newHost(c, openDry)
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	in, out := h.ports[0], h.ports[1]
	from, to := xsk.Dry{Socket: in.xdp.Out()}, xsk.Dry{Socket: out.xdp.Out()}
	place(to, 1, 0x2, 0x1) // so that both are learned
	out.hot, h.hot = true, append(h.hot, out)
	if err := h.turn(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		place(from, min(64, b.N-n), 0x1, 0x2)
		was := in.count.In.Packets
		if !in.hot {
			in.hot, h.hot = true, append(h.hot, in)
		}
		for in.count.In.Packets < was+uint64(min(64, b.N-n)) {
			if err := h.turn(); err != nil {
				b.Fatal(err)
			}
		}
		n += 64
		to.Depart(nil)
	}
	b.StopTimer()
	if got := out.count.Out.Packets; got+1 < uint64(b.N) {
		b.Errorf("%d of %d left", got, b.N)
	}
}

// openDry opens sockets that are none.
func openDry(p PortConfig, _ vnet.Rate) (*device, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &device{fd: fd, what: p.opens(), batched: true, xdp: xsk.Over(xsk.NewDry(fd).Socket)}, nil
}

// place has n frames of 60 bytes arrive.
func place(s xsk.Dry, n int, src, dst byte) {
	for range n {
		s.Arrive(60, func(f []byte) {
			clear(f)
			f[5], f[11] = dst, src
			binary.BigEndian.PutUint16(f[12:], 0x0800)
			f[14], f[23] = 0x45, 17
			binary.BigEndian.PutUint16(f[16:], 46)
			binary.BigEndian.PutUint16(f[38:], 26)
		})
	}
}
