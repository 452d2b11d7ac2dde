package ofswitch

import (
	"errors"
	"os"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/slice"
)

// MostLeading bounds the entries of table 0 that lead packets to slices. They count
// beside those that slices may have.
const MostLeading = 4096

// mostSlices bounds the slices of a switch.
const mostSlices = 16

// beginSlices makes the slices, as they were before and then as they are to be.
func (s *Switch) beginSlices() (err error) {
	c := slice.LocalConfig{
		Below: below{s}, Tables: s.config.Pipeline.Tables, Miss: s.config.MissEntry, Near: s.band != nil, Watch: s.watchConnection, Notify: s.notify, Unread: s.config.Unread,
	}
	if s.store != nil {
		if s.store.slices, err = slice.OpenFiles(".", s.config.Log); err != nil {
			return err
		}
		c.Memory = s.store.slices
	}
	if s.slices, err = slice.NewLocal(c); err != nil {
		return err
	}
	s.tables.Share, s.tables.ShareGroups = s.slices.Share, s.slices.ShareGroups
	return s.reslice()
}

// below is the tables of the switch, for its slices.
type below struct{ *Switch }

// Do does what a slice asks of the whole switch.
func (b below) Do(m of13.Message) (of13.Message, error) {
	if b.runs && m.Type() == of13.TypeMultipartRequest {
		b.catchUp()
	}
	return b.tables.Do(b.now(), m)
}

// reslice reads which slices there are to be, and makes them.
func (s *Switch) reslice() error {
	if s.slices == nil {
		return errors.New("the switch has no slices")
	}
	list, err := s.config.Slices()
	if err != nil {
		return err
	}
	if err := CheckSlices(list, s.config.Pipeline.Tables); err != nil {
		return err
	}
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	s.packets.share(names)
	return s.slices.Set(list)
}

// CheckSlices says what is wrong with slices of a switch of so many tables.
func CheckSlices(list []slice.Slice, tables int) error {
	leading := 0
	for i := range list {
		leading += max(1, len(list[i].Ports))
	}
	switch {
	case len(list) > mostSlices:
		return errors.New("slices: a switch has 16 at most")
	case leading > MostLeading:
		return errors.New("slices: they have more than 4096 ports together")
	}
	return slice.Check(list, tables)
}

// empty has the switch have no entries, groups and meters, and forget that it had slices.
func (s *Switch) empty() error {
	for _, m := range []of13.Message{
		&of13.FlowMod{Command: of13.FlowDelete, Table: of13.TableAll, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
		&of13.GroupMod{Command: of13.CommandDelete, Group: of13.GroupAll},
		&of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll},
	} {
		if _, err := s.tables.Do(s.now(), m); err != nil {
			return err
		}
	}
	return os.Remove(slice.PlacesFile)
}

func (s *Switch) hurry() {
	s.hub.Hurry()
	if s.slices != nil {
		s.slices.Hurry()
	}
}

func (s *Switch) ready(fd int, events uint32) {
	s.hub.Ready(fd, events)
	if s.slices != nil {
		s.slices.Ready(fd, events)
	}
}

func (s *Switch) tickHubs(now time.Time) {
	s.hub.Tick(now)
	if s.slices != nil {
		s.slices.Tick(now)
	}
}

func (s *Switch) flushHubs() {
	s.hub.Flush()
	if s.slices != nil {
		s.slices.Flush()
	}
}

func (s *Switch) turnOfSlices() (more bool) { return s.slices != nil && s.slices.Turn() }

// happened tells slices, if there are any.
func (s *Switch) happened(m of13.Message) bool {
	if s.slices != nil {
		s.slices.Happened(m)
	}
	return s.slices != nil
}

// sliceOf names the slice that has a table.
func (s *Switch) sliceOf(table uint8) string {
	if s.slices == nil {
		return ""
	}
	return s.slices.Of(table)
}

// sliced says whether the process before this one had slices.
func (s *store) sliced() bool {
	_, err := os.Stat(slice.PlacesFile)
	return err == nil
}

// slicesOf lists slices for who looks at the switch.
func (s *Switch) slicesOf() []slice.Member {
	if s.slices == nil {
		return nil
	}
	list, err := s.slices.Members()
	if err != nil {
		s.config.Log(err)
	}
	return list
}

var _ channel.Datapath = below{}
