package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// table is the forwarding table in the kernel: pinned maps and programs.
type table struct {
	pins    *bpf.Pins
	all     *ebpf.Collection
	objects overlayObjects
	slots   []bool // counters taken; 0 is everybody's
}

// renamed are the pins that versions before 0.1 called otherwise.
var renamed = []bpf.Renamed{
	{From: "cutter", To: overlayMapGsoDevice}, {From: "opener", To: overlayMapDecapPort},
	{From: bpf.ProgramPin("overlay_again"), To: bpf.ProgramPin(overlayProgOverlaySegmented)},
	{From: bpf.ProgramPin("overlay_opened"), To: bpf.ProgramPin(overlayProgOverlayDecapped)},
}

// part names the directory of pins.
const part = "overlay"

// openTable opens the pinned table or makes one. renewed says that what it
// held may be gone.
func openTable(h *kernel.Host) (t *table, renewed bool, err error) {
	spec, err := loadOverlay()
	if err != nil {
		return nil, false, fmt.Errorf("read the overlay's programs: %w", err)
	}
	t = &table{}
	if t.pins, err = bpf.OpenPins(h, part); err != nil {
		return nil, false, err
	}
	all, made, err := t.pins.Load(spec, renamed...)
	if err != nil {
		return nil, false, errors.Join(err, t.pins.Close())
	}
	t.all = all
	if err := all.Assign(&t.objects); err != nil {
		t.close()
		return nil, false, fmt.Errorf("find the overlay's programs: %w", err)
	}
	t.slots = make([]bool, t.objects.Hits.MaxEntries())
	for i := range protocols {
		for key, row := range protocols[i].rows() {
			if err := t.objects.Formats.Put(key, row); err != nil {
				t.close()
				return nil, false, fmt.Errorf("write protocol %s: %w", protocols[i].name, err)
			}
		}
	}
	return t, len(made) > 0, nil
}

func (t *table) close() {
	t.objects.Close()
	t.pins.Close()
}

// remove takes the table and its programs out of the kernel.
func (t *table) remove() error {
	err := t.pins.Unpin()
	t.close()
	return err
}

// owners reads for which items of plans there are entries.
func (t *table) owners() (map[uint32]plan.Overlay, error) {
	items := make(map[uint32]plan.Overlay)
	var id uint32
	var o overlayOwner
	all := t.objects.Owners.Iterate()
	for all.Next(&id, &o) {
		item, err := o.item()
		if err != nil { // another version's; whoever wants it writes it anew
			item = plan.Overlay{}
		}
		items[id] = item
	}
	return items, all.Err()
}

func (o *overlayOwner) item() (item plan.Overlay, err error) {
	n := 0
	for n < len(o.Text) && o.Text[n] != 0 {
		n++
	}
	err = json.Unmarshal(o.Text[:n], &item)
	return item, err
}

func (t *table) setOwner(item plan.Overlay) error {
	text, err := json.Marshal(item)
	if err != nil {
		return err
	}
	var o overlayOwner
	if copy(o.Text[:], text) < len(text) {
		return fmt.Errorf("overlay entry %s takes %d bytes, more than %d", item.Key(), len(text), len(o.Text))
	}
	return t.objects.Owners.Put(uint32(item.VNI), o)
}

// slot finds counters that nobody has, empty ones; 0 when there are none.
func (t *table) slot() (uint32, error) {
	for i := 1; i < len(t.slots); i++ {
		if !t.slots[i] {
			t.slots[i] = true
			empty := make([]overlayCounts, ebpf.MustPossibleCPU())
			return uint32(i), t.objects.Hits.Put(uint32(i), empty)
		}
	}
	return 0, nil
}

func (t *table) free(slot uint32) {
	if slot != 0 && int(slot) < len(t.slots) {
		t.slots[slot] = false
	}
}

// entry reads an entry; false if there is none.
func (t *table) entry(id uint32) (e overlayEntry, ok bool, err error) {
	err = t.objects.Entries.Lookup(id, &e)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return e, false, nil
	}
	return e, err == nil, err
}

// counts reads counters, summed over processors.
func (t *table) counts(slot uint32) (sum overlayCounts, err error) {
	var each []overlayCounts
	if err := t.objects.Hits.Lookup(slot, &each); err != nil {
		return sum, err
	}
	for _, c := range each {
		sum.Sent += c.Sent
		sum.SentBytes += c.SentBytes
		sum.Received += c.Received
		sum.ReceivedBytes += c.ReceivedBytes
		for i := range c.Drops {
			sum.Drops[i] += c.Drops[i]
		}
	}
	return sum, nil
}

// missing makes deleting what is not there no error.
func missing(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
