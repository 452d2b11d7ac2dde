package sched_test

import (
	"testing"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/sched"
)

func TestEverySchedulerKeepsTheLineBusy(t *testing.T) {
	for _, k := range sched.Schedulers() {
		s, err := vxswitch.New(vxswitch.Config{Crosspoint: 96000, Ports: []vxswitch.PhysicalPort{
			{In: vnet.Gbit, Out: vnet.Gbit, Scheduler: sched.DRR{}}, {In: vnet.Gbit, Out: vnet.Gbit, Scheduler: k}}})
		if err != nil {
			t.Fatal(err)
		}
		v := func(n string) vxswitch.Virtual {
			return vxswitch.Virtual{Name: n, Buffer: vxswitch.Crosspoint{Size: 48000}, Ports: []vxswitch.Port{
				{Physical: 0, In: vnet.Gbit / 2, Out: vnet.Gbit / 2, Scheduler: k},
				{Physical: 1, In: vnet.Gbit / 2, Out: vnet.Gbit / 2, Scheduler: k}}}
		}
		if err := s.Apply(0, vxswitch.Add{Virtual: v("a")}, vxswitch.Add{Virtual: v("b")}); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			s.Enqueue(0, vxswitch.ID(i%2), 1, vxswitch.Packet{Size: 1500, Seq: uint64(i), In: int16(i / 2 % 2)})
		}
		n := 0
		for {
			d, ok := s.Depart(vxswitch.Forever - 1)
			if !ok {
				break
			}
			if d.Start != vxswitch.Time(12000*n) {
				t.Fatal(k, d)
			}
			n++
		}
		t.Log(k, n, s.Total())
	}
}
