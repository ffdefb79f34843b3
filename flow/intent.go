package flow

// IntentKind is what a payer means.
type IntentKind string

// The kinds of intent, in the order in which one message is read: what stands
// first wins.
const (
	MeansStop     IntentKind = "stop"     // the whole message is a word of STOP: no more reminders
	MeansResume   IntentKind = "resume"   // START: undoes STOP; to whoever is not stopped it is a menu word
	MeansSecret   IntentKind = "secret"   // a card number, PIN, OTP or CVV was typed; it was masked
	MeansCode     IntentKind = "code"     // an entry code: opens its session
	MeansHuman    IntentKind = "human"    // 9: a person, please
	MeansCancel   IntentKind = "cancel"   // digit 0 or the words
	MeansConfirm  IntentKind = "confirm"  // the exact word CANCEL
	MeansMenu     IntentKind = "menu"     // hi, start, menu, help
	MeansLanguage IntentKind = "language" // 8, or a language in Lang
	MeansBack     IntentKind = "back"     // 7: the payment before this one
	MeansReceipt  IntentKind = "receipt"  // the receipt once more
	MeansWho      IntentKind = "who"      // who is this, wrong number, scam?
	MeansMoney    IntentKind = "money"    // refund, where is my money, not received
	MeansTerms    IntentKind = "terms"    // in parts, by somebody else, at what charge: what holds for this payment
	MeansMethod   IntentKind = "method"   // a method by digit or word
	MeansMaybe    IntentKind = "maybe"    // what is perhaps the name of Method: to be asked about
	MeansYes      IntentKind = "yes"      // to "did you mean"
	MeansNo       IntentKind = "no"
	MeansBank     IntentKind = "bank"  // a bank out of the USSD menu
	MeansPaid     IntentKind = "paid"  // "I have paid"
	MeansAgain    IntentKind = "again" // send the details again
	MeansOther    IntentKind = "other" // pay another way
	MeansThanks   IntentKind = "thanks"
	MeansWait     IntentKind = "wait"     // "hold on": is not ready yet
	MeansAbuse    IntentKind = "abuse"    // an insult; nothing is done about it but counting
	MeansMedia    IntentKind = "media"    // a picture or a document
	MeansUnread   IntentKind = "unread"   // a voice note, video, sticker, place or contact
	MeansCall     IntentKind = "call"     // a call, which was rejected
	MeansNote     IntentKind = "note"     // a reaction, an edit of what was consumed, a message taken back: kept, not answered
	MeansTakeover IntentKind = "takeover" // somebody typed on the phone of our own number
	MeansNothing  IntentKind = "unknown"
)

// Intent is a payer's message as it was understood. Text is kept for the log
// with secrets masked: no run of four digits or more is in it.
type Intent struct {
	Kind   IntentKind `json:"kind"`
	Method Method     `json:"method,omitempty"`
	Bank   string     `json:"bank,omitempty"` // bank code
	Code   string     `json:"code,omitempty"` // entry code, eight characters
	Lang   Lang       `json:"lang,omitempty"`
	Text   string     `json:"text,omitempty"`
	By     int        `json:"by,omitempty"`    // version of the reading, see bot.Reading
	Named  bool       `json:"named,omitempty"` // Lang or Bank by its name, and not by a digit alone or a word that may say something else
	Guess  bool       `json:"guess,omitempty"` // out of a word of the sentence, which says nothing exactly
}

// Lang is a language of the conversation, as ISO 639 names it.
type Lang string

// The languages. The zero Lang is English.
const (
	English Lang = "en"
	Pidgin  Lang = "pcm"
	Hausa   Lang = "ha"
	Yoruba  Lang = "yo"
	Igbo    Lang = "ig"
)

// Langs are the languages in the order of their menu, whose digits begin at
// FirstLang.
func Langs() []Lang { return []Lang{English, Pidgin, Hausa, Yoruba, Igbo} }

// FirstLang is the digit of the first language in the menu of languages. No
// other menu has it: a digit means one thing, whatever was shown last.
const FirstLang = 21
