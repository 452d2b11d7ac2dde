package sim

import (
	"math"

	"sublet/agent/control"
	"sublet/internal/splitmix"
)

// plane is a cost by which so many Mbit/s of 1500 bytes pass with each
// hundredth of a core, and of which a part is for each byte.
func plane(mbit, perByte float64) control.Profile {
	cost := 1500 * 8 / (mbit * 1e8)
	return control.Profile{Fixed: (1 - perByte) * cost, PerByte: perByte * cost / 1500}
}

// fn is a function whose profile is known, 5 % wrong.
func fn(name string, mbit, perByte float64) Function {
	cost := plane(mbit, perByte)
	return Function{Name: name, Cost: cost, Profile: control.Profile{Fixed: 1.05 * cost.Fixed, PerByte: 0.95 * cost.PerByte}}
}

// unknown is one that nobody measured.
func unknown(name string, mbit, perByte float64) Function {
	return Function{Name: name, Cost: plane(mbit, perByte)}
}

func always(x float64) func(float64) float64 { return func(float64) float64 { return x } }

// steps is a value from each of some times on; the first is from the beginning.
func steps(values []float64, times ...float64) func(float64) float64 {
	return func(t float64) float64 {
		x := values[0]
		for i, from := range times {
			if t >= from-tick/2 {
				x = values[i+1]
			}
		}
		return x
	}
}

// onOff offers a fifth more than a rate for some seconds, then nothing.
func onOff(rate, on, off float64) func(float64) float64 {
	return func(t float64) float64 {
		if math.Mod(t+tick/2, on+off) < on {
			return 1.2 * rate
		}
		return 0
	}
}

// bursty offers from 1.05 to 2 times a rate, another part in each tenth of a
// second.
func bursty(rate float64) func(float64) float64 {
	return func(t float64) float64 {
		s := splitmix.Source(uint64(t*10 + 0.05))
		return rate * (1.05 + 0.95*s.Float())
	}
}

func one(rate float64, size func(float64) float64, via ...int) []Chain {
	return []Chain{{Rate: rate, Via: via, Size: size}}
}

// Scenarios are those the controller is judged by. Its bounds were chosen with
// others (the tests have them) and are the same in all.
func Scenarios() []Scenario {
	const M, G = 1e6, 1e9
	big := always(1500)
	list := []Scenario{
		{Name: "5 Mbit/s", Seconds: 120, Functions: []Function{fn("fw", 6, 0.2)}, Chains: one(5*M, big, 0)},
		{Name: "100 Mbit/s, firewall and NAT", Seconds: 120, Functions: []Function{fn("fw", 9.1, 0.1), fn("nat", 8.3, 0.1)}, Chains: one(100*M, big, 0, 1)},
		{Name: "400 Mbit/s, elastic (TCP)", Seconds: 300, Functions: []Function{fn("s1", 6.7, 0.1)}, Chains: []Chain{{Rate: 400 * M, Via: []int{0}, Size: big, Elastic: true}}},
		{Name: "1 Gbit/s, three functions", Seconds: 120, Functions: []Function{fn("a", 15, 0.2), fn("b", 20, 0.3), fn("c", 30, 0.1)}, Chains: one(G, big, 0, 1, 2)},
		{Name: "2 Gbit/s on a plane of 50 Mbit/s per hundredth", Seconds: 120, Functions: []Function{fn("a", 50, 0.3), fn("b", 40, 0.3)}, Chains: one(2*G, big, 0, 1)},
		{Name: "100 Mbit/s, 1500 to 512 bytes", Seconds: 60, Events: []float64{20, 40}, Functions: []Function{fn("fw", 9.1, 0.05), fn("nat", 8.3, 0.05)}, Chains: one(100*M, steps([]float64{1500, 512, 1500}, 20, 40), 0, 1)},
		{Name: "400 Mbit/s, a flow of 512 bytes joins and leaves", Seconds: 60, Events: []float64{20, 40}, Functions: []Function{fn("s1", 9, 0.1), fn("s2", 12, 0.1)}, Chains: one(400*M, steps([]float64{1500, 763, 1500}, 20.03, 40.07), 0, 1)},
		{Name: "100 Mbit/s, 1500 to 64 bytes", Seconds: 60, Events: []float64{20, 40}, Functions: []Function{fn("fw", 40, 0.1)}, Chains: one(100*M, steps([]float64{1500, 64, 1500}, 20.05, 40.05), 0)},
		{Name: "2 Gbit/s, 1500 to 1000 bytes, nobody measured it", Seconds: 60, Events: []float64{20, 40}, Functions: []Function{unknown("a", 50, 0.3)}, Chains: one(2*G, steps([]float64{1500, 1000, 1500}, 20.01, 40.09), 0)},
		{Name: "six sizes in turn", Seconds: 120, Events: []float64{20, 40, 60, 80, 100}, Functions: []Function{fn("a", 12, 0.2), fn("b", 16, 0.2)}, Chains: one(200*M, steps([]float64{1500, 900, 512, 700, 256, 1400}, 20, 40.02, 60.04, 80.06, 100.08), 0, 1)},
		{Name: "bursty", Seconds: 120, Functions: []Function{fn("a", 10, 0.1), fn("b", 10, 0.1)}, Chains: []Chain{{Rate: 300 * M, Via: []int{0, 1}, Size: big, Offered: bursty(300 * M)}}},
		{Name: "3 s on, 3 s off", Seconds: 120, Functions: []Function{fn("a", 10, 0.1), fn("b", 14, 0.1)}, Chains: []Chain{{Rate: 300 * M, Via: []int{0, 1}, Size: big, Offered: onOff(300*M, 3, 3)}}},
		{Name: "another size after each of 5 s off", Seconds: 50, Events: []float64{20, 30, 40}, Functions: []Function{fn("a", 10, 0.1)}, Chains: []Chain{{Rate: 200 * M, Via: []int{0}, Size: steps([]float64{1500, 600, 1200, 400}, 16, 26, 36), Offered: onOff(200*M, 5, 5)}}},
		{Name: "noisy neighbour: costs a third higher for 30 s", Seconds: 90, Events: []float64{30, 60}, Functions: []Function{{Name: "a", Cost: plane(12, 0.1), Profile: plane(12, 0.1), Slower: steps([]float64{1, 1.3, 1}, 30.04, 60.04)}, {Name: "b", Cost: plane(9, 0.1), Profile: plane(9, 0.1), Slower: steps([]float64{1, 1.3, 1}, 30.04, 60.04)}}, Chains: one(300*M, big, 0, 1)},
		{Name: "the second function becomes twice as slow", Seconds: 60, Events: []float64{30}, Functions: []Function{fn("a", 12, 0.1), {Name: "b", Cost: plane(20, 0.2), Slower: steps([]float64{1, 2}, 30.03)}}, Chains: one(500*M, big, 0, 1)},
		{Name: "a function becomes slower by a fifth over 120 s", Seconds: 180, Functions: []Function{{Name: "a", Cost: plane(10, 0.1), Slower: func(t float64) float64 { return 1 + 0.2*min(max(t-30, 0), 120)/120 }}}, Chains: one(400*M, big, 0)},
		{Name: "two chains share a function, one changes size", Seconds: 60, Events: []float64{20, 40}, Functions: []Function{fn("a", 10, 0.1), fn("b", 12, 0.1), fn("shared", 14, 0.1)}, Chains: []Chain{
			{Rate: 200 * M, Via: []int{0, 2}, Size: steps([]float64{1500, 600, 1500}, 20.06, 40.06)}, {Rate: 300 * M, Via: []int{1, 2}, Size: big}}},
		{Name: "two chains share a function, one is on and off", Seconds: 120, Functions: []Function{fn("a", 10, 0.1), fn("b", 12, 0.1), fn("shared", 14, 0.1)}, Chains: []Chain{
			{Rate: 200 * M, Via: []int{0, 2}, Size: big, Offered: onOff(200*M, 4, 4)}, {Rate: 300 * M, Via: []int{1, 2}, Size: always(900)}}},
		{Name: "a firewall begins to block 40 %", Seconds: 60, Events: []float64{20, 40}, Functions: []Function{{Name: "fw", Cost: plane(10, 0.1), Profile: plane(10, 0.1), Lets: steps([]float64{1, 0.6, 1}, 20, 40)}, fn("nat", 8, 0.1)}, Chains: one(400*M, big, 0, 1)},
		{Name: "functions that poll, 1500 to 600 bytes", Seconds: 60, Events: []float64{20, 40}, Functions: []Function{{Name: "a", Cost: plane(12, 0.1), Profile: plane(12, 0.1), Polls: true}, {Name: "b", Cost: plane(15, 0.1), Profile: plane(15, 0.1), Polls: true}}, Chains: one(300*M, steps([]float64{1500, 600, 1500}, 20.02, 40.02), 0, 1)},
	}
	for i := range list {
		list[i].Seed = uint64(1000 + i)
	}
	return list
}
