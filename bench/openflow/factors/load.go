package main

import (
	"errors"
	"time"

	"sublet/bench/openflow/bed"
	"sublet/measure/pktgen"
	"sublet/openflow/of13"
)

// The switch is on processor 0, who sends on this one.
const senders = 1

// partner is the station to which one sends: its neighbour.
func partner(station int) int { return station ^ 1 }

// pairs join each port with its partner.
func pairs(ports int) (list []of13.Message) {
	for i := range ports {
		list = append(list, bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, uint64(i+1))}, of13.Output(uint32(partner(i)+1))))
	}
	return list
}

// send has so many stations send, each by some threads, while do runs, and says how
// many frames came in a second of it.
func send(s *bed.Switch, stations, threads int, do func() error) (rate float64, err error) {
	var counters []*pktgen.Counter
	var workers []pktgen.Worker
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.Stop())
		}
		for _, c := range counters {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, station := range s.Stations {
		c, err := pktgen.CountIn(station)
		if err != nil {
			return 0, err
		}
		counters = append(counters, c)
	}
	for i := range stations {
		to := s.Stations[partner(i)]
		link, err := to.Link()
		if err != nil {
			return 0, err
		}
		for range threads {
			w, err := pktgen.StartTo(s.Stations[i], to, link.Attrs().HardwareAddr, *size, senders, pktgen.Discard)
			if err != nil {
				return 0, err
			}
			workers = append(workers, w)
		}
	}
	time.Sleep(*window / 2)
	came := func() (n uint64) {
		for _, c := range counters {
			n += c.Packets()
		}
		return n
	}
	before, began := came(), time.Now()
	err = do()
	return float64(came()-before) / time.Since(began).Seconds(), err
}

func wait() error { time.Sleep(*window); return nil }
