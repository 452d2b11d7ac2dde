package live

import (
	"fmt"

	"sublet/datapath/xsk"
)

// openXDP opens AF_XDP sockets on a device that is there.
func openXDP(c PortConfig) (d *device, err error) {
	err = in(c.Namespace, func() error {
		x, err := xsk.Open(c.XDP)
		if err == nil {
			d = &device{fd: x.Out().FD(), link: x.Link, xdp: x, batched: true}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open device %s: %w", c.XDP, err)
	}
	return d, nil
}

// lags says that frames wait for a busy device.
func (d *device) lags() bool {
	return d.xdp != nil && len(d.xdp.Sockets) > 0 && d.xdp.Out().Busy
}

// takeXDP copies the next frame of any queue into f; rest is for a long
// one.
func (d *device) takeXDP(f *slot, rest []byte) (ok, kept bool) {
	b, s := d.xdp.Next()
	if b == nil {
		return false, false
	}
	kept = f.set(b, rest)
	s.Release()
	return true, kept
}

// set makes f the frame b, which an AF_XDP socket gave. kept says that it is
// longer than the slot's own memory and in rest.
func (f *slot) set(b, rest []byte) (kept bool) {
	f.off, f.len = headroom, virtio+len(b)
	if kept = f.len > small-headroom; kept {
		f.mem = rest
	}
	copy(f.frame(), b)
	xsk.Describe(f.header(), b)
	return kept
}

// writeXDP is writeAll's.
func (d *device) writeXDP(all []slot, refs []uint32) (n int, err error) {
	s := d.xdp.Out()
	for n < len(refs) && err == nil {
		f := &all[refs[n]]
		if err = s.Put(f.header(), f.frame()); err == nil {
			n++
		}
	}
	if sent := s.Send(); err == nil {
		err = sent
	}
	if err != nil && n == len(refs) {
		n--
	}
	return n, err
}
