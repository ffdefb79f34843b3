package flow

import (
	"slices"
	"time"
)

// AskAges are how long after money was ordered to be sent out its bank is asked
// what became of it; after the last of them somebody must look.
func AskAges() []time.Duration { return slices.Clone(askAt[:]) }

// SendAgainWaits are how long a refund that no merchant ordered waits after each
// refusal before it is sent again by itself.
func SendAgainWaits() []time.Duration { return slices.Clone(sendAgain[:]) }

// CheckAges are the ages at which an attempt is asked about unasked, at first.
func CheckAges() []time.Duration { return slices.Clone(checkAt[:]) }

// LateWaits are how long after its end an attempt is asked about that nobody paid.
func LateWaits() []time.Duration { return slices.Clone(lateAt[:]) }

// AfterwardsWaits are how long after its end an attempt is asked about that
// nothing more is expected of.
func AfterwardsWaits() []time.Duration { return slices.Clone(afterwards[:]) }

// StartWaits are the waits before a bank is asked again about instructions that it
// did not say anything of.
func StartWaits() []time.Duration { return slices.Clone(startAgain[:]) }
