package bot

// Folded is how a text is compared.
var Folded = fold

// ParseWords reads a language that is not built in.
var ParseWords = parsePack

// LoadWordsFrom reads languages that are not built in.
var LoadWordsFrom = loadWords
