/// Returns the place in a ring, each place with some room, that is farthest from all of `ends`: with the most room
/// between each end and the place, and between the place and the next end. Nil if there is no room.
func farthestPlace(in room: [Int], from ends: [Int]) -> Int? {
    var sums = [0]
    for places in room { sums.append(sums[sums.count - 1] + places) }
    let all = sums[room.count]
    guard all > 0 else { return nil }
    /// The room from one place up to another, around the ring.
    func distance(_ from: Int, _ to: Int) -> Int {
        let difference = sums[to] - sums[from]
        return difference >= 0 && from <= to ? difference : difference + all
    }
    let ends = ends.filter { room.indices.contains($0) }
    var best: (place: Int, distance: Int)?
    for place in room.indices where room[place] > 0 {
        let least = ends.reduce(all) { min($0, distance($1, place), distance(place, $1)) }
        if least > best?.distance ?? -1 { best = (place, least) }
    }
    return best?.place
}
