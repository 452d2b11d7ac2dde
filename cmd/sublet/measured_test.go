package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sublet/vnet"
)

// A measurement is kept, with its age, until the machine is another.
func TestMeasurementIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sublet", "measured.json")
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	if _, ok := remembered(file, now); ok {
		t.Fatal("there is one before anybody measured")
	}
	m := vnet.Measurement{Measured: 3 * vnet.Gbit, Delay: 50 * time.Microsecond, MeasuredAt: now, Machine: thisMachine()}
	if err := remember(file, m); err != nil {
		t.Fatal(err)
	}
	if got, ok := remembered(file, now.Add(mostAge/2)); !ok || got != m {
		t.Errorf("remembered %+v, %t; want %+v", got, ok, m)
	}
	if _, ok := remembered(file, now.Add(mostAge)); ok {
		t.Error("it holds for ever")
	}
	other := m
	other.Machine = "Linux 2.6"
	for name, bad := range map[string]vnet.Measurement{"another machine": other, "of nothing": {Machine: m.Machine, MeasuredAt: now}} {
		if err := remember(file, bad); err != nil {
			t.Fatal(err)
		}
		if _, ok := remembered(file, now); ok {
			t.Error(name + ": it holds")
		}
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := remembered(file, now); ok {
		t.Error("half a file holds")
	}
}

// A lab's hosts share what the machine forwards, measured or assumed.
func TestLabCountsOnTheMachine(t *testing.T) {
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2", Capacity: 20 * vnet.Gbit}},
		Links: []vnet.SubstrateLink{{Name: "wire", Ends: [2]string{"h1", "h2"}, Capacity: 10 * vnet.Gbit}},
	}
	assumed := onThisMachine(sub, vnet.Measurement{}, false, 2)
	if assumed.Forwards != 4*vnet.Gbit || assumed.Hosts[0].Measured != 0 {
		t.Errorf("assumed: %+v", assumed)
	}
	m := vnet.Measurement{Measured: 3 * vnet.Gbit, Delay: time.Microsecond}
	known := onThisMachine(sub, m, true, 2)
	if known.Forwards != m.Measured || known.Hosts[1].Measurement != m || known.Hosts[1].Carries() != m.Measured || known.Links[0].Leasable() != m.Measured {
		t.Errorf("measured: %+v", known)
	}
	if sub.Hosts[0].Measured != 0 {
		t.Error("the substrate itself was changed")
	}
}
