package ofswitch

import (
	"os"
	"testing"

	"sublet/datapath/kernel"
	"sublet/internal/proc"
)

// The devices of a switch that was killed go when any other starts; those of one that
// lives, or that are kept, stay.
func TestDevicesOfTheDeadGo(t *testing.T) {
	if !within(t) {
		return
	}
	conn, err := kernel.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := newUpcall(conn, "up000000000001", false); err != nil {
		t.Fatal(err)
	}
	if err := newUpcall(conn, "up000000000002", true); err != nil {
		t.Fatal(err)
	}
	me, _ := proc.Living(os.Getpid())
	me.Started = "1" // as one that had this number before
	for _, name := range []string{"up000000000003", "up000000000004", "other"} {
		if err := newUpcall(conn, name, true); err != nil {
			t.Fatal(err)
		}
		if err := mark(conn, name, me); err != nil {
			t.Fatal(err)
		}
	}
	listened, err := conn.LinkByName("up000000000004")
	if err != nil {
		t.Fatal(err)
	}
	end, err := conn.LinkByIndex(listened.Peer)
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDevice(end.Name, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		"up000000000001": true, "up000000000002": true, "up000000000003": false, "up000000000004": true, "other": true,
	} {
		if _, err := conn.LinkByName(name); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
