package measure

// Loss is lost/sent, a fraction from 0 to 1; of nothing sent it is 0.
// Received counts distinct packets, so it cannot truly exceed sent.
func Loss(sent, received uint64) float64 {
	if sent == 0 || received >= sent {
		return 0
	}
	return float64(sent-received) / float64(sent)
}
