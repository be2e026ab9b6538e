/// The first four bytes of a fingerprint as words, which people compare more readily than digits.
func fingerprintWords(_ fingerprint: [UInt8]) -> String {
    fingerprint.prefix(4).map { words[Int($0)] }.joined(separator: " ")
}

/// The whole fingerprint as browsers show it: pairs of digits with colons between.
func fingerprintText(_ fingerprint: [UInt8]) -> String {
    fingerprint.map { byte in
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.utf8.count == 1 ? "0" + digits : digits
    }.joined(separator: ":")
}

/// 256 words, one for each byte: short, easily told apart, and nothing unkind.
private let words: [String] =
    """
    acorn album alpine amber anchor apple april apron arch arrow atlas attic autumn badge baker balcony
    balloon bamboo banjo barley basil basket beach beacon beaver berry bicycle birch bishop blanket blossom blue
    boat bonfire book bottle boulder bread breeze brick bridge bronze brook brush bucket butter cabin cactus
    camel camera candle canoe canyon carpet carrot castle cedar cello chalk cherry chess chimney cider cinema
    circus citrus clay cliff clock cloud clover cobalt cocoa coffee comet compass copper coral cotton cousin
    crane crayon cricket crimson crystal curtain cypress daisy dancer dawn deer denim desert diamond dolphin domino
    donkey dragon drum eagle easel echo elbow ember emerald engine ermine falcon feather fern ferry fiddle
    field finch flag flame flute forest fountain fox galaxy garden garlic gate ginger giraffe glacier glove
    gold goose granite grape gravel guitar hammer harbor harp harvest hazel heron hill honey horizon horse
    hotel igloo indigo iris island ivory ivy jacket jade jaguar jasmine jelly jigsaw jungle juniper kayak
    kettle kitchen kite koala ladder lagoon lantern lemon library lilac lily linen lizard lobster lotus lunar
    magnet mango maple marble market meadow melon mercury mint mirror mitten mosaic mountain museum music napkin
    nectar needle nest north nutmeg oak oasis ocean olive onion opal orange orchid otter owl oyster
    paddle palace palm panda paper parrot pasta peach pearl pebble pelican pencil pepper piano picnic pilot
    pine pirate planet plum pocket polar pony poppy potato prairie prism pumpkin puzzle quartz quilt rabbit
    radio raft rain raven ribbon river robin rocket rose ruby saddle saffron salmon sand sapphire scarf
    """.split { $0 == " " || $0 == "\n" }.map(String.init)
