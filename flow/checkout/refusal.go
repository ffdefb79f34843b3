package checkout

import (
	"errors"

	"till/flow"
)

// asRefusal says whether an error is a refusal by rule that a payer's chat can
// answer, and not a fault of the store.
func asRefusal(err error, to **flow.Error) bool {
	return errors.As(err, to) && (*to).Code != flow.CodeStorage && (*to).Code != flow.CodeInternal
}
