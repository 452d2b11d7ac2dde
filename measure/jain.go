package measure

// Jain is Jain's fairness index (sum x)^2 / (n * sum x^2) (Anhalt and
// Vicat-Blanc Primet, section III.D): 1
// when all shares are equal, 1/n when one takes everything. Of nothing, or of
// nothing but zeros, it is 1: nobody is treated unfairly.
func Jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}
