// A model over a group.  Every unit is padded to world size parts of whole alignments; a rank of a shard
// group has one part of the compute weights, of which its place among the replicas owns a piece: master,
// gradient.
//
//   unit   | shard rank 0            | shard rank 1            | ...
//          | replica 0 | replica 1   | replica 0 | replica 1   |
//
// Where the shard group has common memory, a unit's parts lie there side by side: everybody reads the whole
// unit in place, nothing is gathered, and gradients are summed from where each rank made them.
#include <ATen/ATen.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/index.h"
#include "retort/shard/common_tensors.h"
#include "retort/shard/parameters.h"
#include "retort/shard/tensor_buffer.h"

namespace retort::shard {
namespace {

using base::to_size;

// How one unit is cut.
struct Cut {
  std::int64_t size = 0;   // elements of the unit
  std::int64_t piece = 0;  // of one rank
  std::int64_t part = 0;   // of one rank of a shard group: a piece for each replica
  std::int64_t total = 0;  // padded unit
};

class ShardedParameters final : public Parameters {
 public:
  ShardedParameters(const model::UnitSource& source, Use use, at::ScalarType compute, at::Device device,
                    const Groups& groups)
      : config_(source.config),
        layout_(source.layout),
        use_(use),
        compute_(compute),
        master_type_(compute == at::kDouble ? at::kDouble : at::kFloat),
        device_(device),
        world_(*groups.world),
        shard_(*groups.shard),
        replica_(*groups.replica),
        ahead_(groups.ahead),
        units_(layout_.units.size()) {
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
      units_[unit].cut = cut_of(layout_.units[unit].size);
    find_places();
    take_weights();
    if (use_ == Use::trained) take_gradients();
    read(source);
  }
  ~ShardedParameters() override {
    // Nothing new is called: an error may have ended this rank's part of a step.
    for (auto& reducing : reducing_) end(reducing.under_way);
    for (auto& u : units_)
      for (auto* handle : {&u.summing, &u.ready, &u.gathering}) end(*handle);
  }
  ShardedParameters(const ShardedParameters&) = delete;
  ShardedParameters& operator=(const ShardedParameters&) = delete;

  const architecture::Config& config() const override { return config_; }
  const architecture::Layout& layout() const override { return layout_; }

  void prefetch(std::int64_t unit) override {
    if (gathered_apart() && ahead_) gather(unit);
  }
  void advance() override {
    if (!updated_.empty()) send_to_replicas_up_to(updated_.front());
  }
  at::Tensor acquire(std::int64_t unit) override {
    auto& u = units_[to_size(unit)];
    if (gathered_apart()) gather(unit);
    u.ready.wait();
    if (!gathered_apart()) return u.whole.narrow(0, 0, u.cut.size);
    u.gathering.wait();
    ++u.holders;
    return u.gathered.narrow(0, 0, u.cut.size);
  }
  void release(std::int64_t unit) override {
    auto& u = units_[to_size(unit)];
    if (gathered_apart() && --u.holders == 0) u.gathered = at::Tensor();
  }
  bool resident() const override { return !gathered_apart(); }

  at::Tensor gradient(std::int64_t unit) override {
    base::ensure(use_ == Use::trained, "a unit that is trained");
    auto& u = units_[to_size(unit)];
    if (!u.gradient.defined()) {
      if (common_gradients_.empty()) {
        while (reducing_.size() > kMostReducing) settle();
        u.gradient = at::zeros({u.cut.total}, options(master_type_));
      } else {
        u.gradient = common_gradient(unit).narrow(0, 0, u.cut.total).zero_();
      }
    }
    return u.gradient.narrow(0, 0, u.cut.size);
  }

  void reduce(std::int64_t unit, bool last) override {
    (void)gradient(unit);  // zeros, where this rank had nothing to add
    auto& u = units_[to_size(unit)];
    Reducing reducing{unit, last, std::move(u.gradient), u.reduced, {}};
    u.gradient = at::Tensor();
    if (u.filled) reducing.sum = at::empty_like(u.reduced);
    u.filled = true;
    reducing.under_way = shard_.reduce_scatter(buffer_of(reducing.whole), buffer_of(reducing.sum));
    // Calls follow each other, so the sum over shard groups may be called before the one within has ended.
    if (reducing.last && reducing.sum.is_same(u.reduced)) sum_over_replicas(u);
    reducing_.push_back(std::move(reducing));
    if (ahead_) return;
    settle_all();
    u.summing.wait();
  }

  void finish_reduces() override {
    settle_all();
    for (auto& u : units_) u.summing.wait();
  }

  void zero_gradients() override {
    settle_all();
    for (auto& u : units_) u.filled = false;
  }

  optim::UnitRange range(std::int64_t unit) const override {
    const auto& cut = units_[to_size(unit)].cut;
    const auto begin = std::min(shard_.rank() * cut.part + replica_.rank() * cut.piece, cut.size);
    return {begin, std::clamp<std::int64_t>(cut.size - begin, 0, cut.piece)};
  }
  at::Tensor master(std::int64_t unit) override { return own(unit, units_[to_size(unit)].master); }
  at::Tensor own_gradient(std::int64_t unit) override {
    auto& u = units_[to_size(unit)];
    return own(unit, own_piece(u, u.reduced));
  }
  at::Tensor compute_copy(std::int64_t unit) override {
    auto& u = units_[to_size(unit)];
    return compute_ == master_type_ ? at::Tensor() : own(unit, own_piece(u, u.part));
  }

  void updated(std::int64_t unit) override {
    auto& u = units_[to_size(unit)];
    updated_.push_back(unit);
    // Where units are gathered, all of these at once would stand before the first that is needed.  That of
    // unit 0 moves while the other units are updated.
    if (!gathered_apart() || !ahead_ || unit == 0) send_to_replicas_up_to(unit);
    if (common_) u.ready = shard_.all_gather(buffer_of(u.part), buffer_of(u.whole));
    if (!ahead_) u.ready.wait();
  }

  void check_replicas() override {
    if (replica_.size() == 1) return;
    while (!updated_.empty()) advance();
    base::Hasher hasher;
    for (auto& u : units_) {
      u.ready.wait();
      const auto values = u.part.to(at::kCPU);
      hasher.update(values.const_data_ptr(), values.nbytes());
    }
    const auto hashes = world_.all_texts(hasher.hex());
    world_.together([&] {
      for (std::size_t rank = 0; rank < places_.size(); ++rank) {
        const auto first = std::ranges::find(places_, places_[rank].shard, &Place::shard) - places_.begin();
        base::require<base::PeerError>(
            hashes[rank] == hashes[to_size(first)], "rank ", rank, " holds other weights of the ",
            use_ == Use::trained ? "trained" : "frozen", " model than its replica, rank ", first,
            ": memory or the network of one of them is at fault; start the same command again, on other "
            "machines, to go on from what is kept.");
      }
    });
  }

  at::Tensor whole_master(std::int64_t unit) override {
    auto& u = units_[to_size(unit)];
    if (common_masters_ && replica_.size() == 1) {
      shard_.barrier();
      return u.masters.narrow(0, 0, u.cut.size);
    }
    const auto all = at::empty({u.cut.piece * world_.size()}, u.master.options());
    world_.all_gather(buffer_of(u.master), buffer_of(all)).wait();
    const auto whole = at::empty({u.cut.total}, u.master.options());
    for (std::size_t rank = 0; rank < places_.size(); ++rank)
      whole.narrow(0, places_[rank].shard * u.cut.part + places_[rank].replica * u.cut.piece, u.cut.piece)
          .copy_(all.narrow(0, static_cast<std::int64_t>(rank) * u.cut.piece, u.cut.piece));
    return whole.narrow(0, 0, u.cut.size);
  }

 private:
  static constexpr std::size_t kMostReducing = 1;  // whole gradients on their way, beside the one being made

  struct Unit {
    Cut cut;
    at::Tensor whole;     // in common memory, or alone: all parts
    at::Tensor part;      // compute weights of this rank of the shard group
    at::Tensor masters;   // in common memory: those of the shard group
    at::Tensor master;    // one piece
    at::Tensor gathered;  // where parts lie apart: the unit as long as somebody holds it
    at::Tensor gradient;  // of the whole unit, while it is made
    at::Tensor reduced;   // one part
    comm::Handle ready, gathering, summing;
    std::int64_t holders = 0;
    bool filled = false;  // `reduced` has a sum of this step
  };
  struct Reducing {
    std::int64_t unit;
    bool last;
    at::Tensor whole, sum;
    comm::Handle under_way;
  };
  struct Place {
    std::int64_t shard = 0, replica = 0;
  };

  at::TensorOptions options(at::ScalarType type) const {
    return at::TensorOptions().dtype(type).device(device_);
  }
  bool gathered_apart() const { return !common_ && shard_.size() > 1; }

  Cut cut_of(std::int64_t size) const {
    const auto ranks = static_cast<std::int64_t>(world_.size());
    const auto step = ranks * architecture::kAlignment;
    const auto piece = (size + step - 1) / step * architecture::kAlignment;
    return {size, piece, piece * replica_.size(), piece * ranks};
  }

  at::Tensor own_piece(const Unit& u, const at::Tensor& part) const {
    return part.narrow(0, replica_.rank() * u.cut.piece, u.cut.piece);
  }
  at::Tensor own(std::int64_t unit, const at::Tensor& piece) const {
    return piece.narrow(0, 0, range(unit).count);
  }

  // Which piece each rank has.  Those of a shard group may differ in their places among replicas.
  void find_places() {
    const Place own{shard_.rank(), replica_.rank()};
    places_ = world_.all_values(own);
    replicas_of_shard_ = shard_.all_values(own.replica);
  }

  // Of `per_unit` elements for each unit; empty when the ranks have no memory in common.
  std::optional<CommonTensors> common_tensors(std::int64_t elements, at::ScalarType type) {
    if (!device_.is_cpu()) return {};
    auto block = shard_.common_block(elements * static_cast<std::int64_t>(at::elementSize(type)));
    if (!block) return {};
    return CommonTensors(std::move(block), shard_.size(), type);
  }
  std::int64_t sum_of(std::int64_t Cut::*elements) const {
    std::int64_t sum = 0;
    for (const auto& u : units_) sum += u.cut.*elements;
    return sum;
  }

  void take_weights() {
    auto wholes = shard_.size() > 1 ? common_tensors(sum_of(&Cut::total), compute_) : std::nullopt;
    common_ = wholes.has_value();
    const bool apart = use_ == Use::trained && compute_ != master_type_;
    auto masters =
        apart && common_ ? common_tensors(sum_of(&Cut::piece) * shard_.size(), master_type_) : std::nullopt;
    common_masters_ = common_ && use_ == Use::trained;
    for (auto& u : units_) {
      if (common_) {
        u.whole = wholes->take(u.cut.total);
        u.part = u.whole.narrow(0, shard_.rank() * u.cut.part, u.cut.part);
      } else {
        u.part = at::zeros({u.cut.part}, options(compute_));
        if (shard_.size() == 1) u.whole = u.part;
      }
      if (use_ == Use::frozen) continue;
      if (!apart) {
        u.masters = u.whole;
        u.master = own_piece(u, u.part);
      } else if (masters) {
        u.masters = masters->take(u.cut.piece * shard_.size());
        u.master = u.masters.narrow(0, shard_.rank() * u.cut.piece, u.cut.piece);
      } else {
        u.master = at::zeros({u.cut.piece}, options(master_type_));
      }
    }
  }

  // Whole gradients: two blocks on their way, and the units that wait for the end of the step's backward.
  void take_gradients() {
    for (auto& u : units_) u.reduced = at::zeros({u.cut.part}, options(master_type_));
    if (!common_) return;
    const auto block = largest_block();
    auto elements = 2 * block;
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
      if (!is_block(unit)) elements += units_[unit].cut.total;
    auto tensors = common_tensors(elements * shard_.size(), master_type_);
    for (int rank = 0; rank < shard_.size(); ++rank) {
      std::vector<at::Tensor> of_rank{tensors->take(block), tensors->take(block)};
      for (std::size_t unit = 0; unit < units_.size(); ++unit)
        if (!is_block(unit)) of_rank.push_back(tensors->take(units_[unit].cut.total));
      if (rank == shard_.rank()) common_gradients_ = std::move(of_rank);
    }
  }
  bool is_block(std::size_t unit) const {
    return layout_.units[unit].kind == architecture::Unit::Kind::block;
  }
  std::int64_t largest_block() const {
    std::int64_t largest = 0;
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
      if (is_block(unit)) largest = std::max(largest, units_[unit].cut.total);
    return largest;
  }

  // Free for this unit: what was reduced from there before has ended.
  const at::Tensor& common_gradient(std::int64_t unit) {
    const std::size_t number = is_block(to_size(unit)) ? to_size(unit) % 2 : unit == 0 ? 2 : 3;
    const auto& tensor = common_gradients_[number];
    const auto busy = [&] {
      return std::ranges::any_of(reducing_,
                                 [&](const Reducing& r) { return r.whole.data_ptr() == tensor.data_ptr(); });
    };
    while (busy()) settle();
    return tensor;
  }

  void settle() {
    auto reducing = std::move(reducing_.front());
    reducing_.pop_front();
    reducing.under_way.wait();
    auto& u = units_[to_size(reducing.unit)];
    if (reducing.sum.is_same(u.reduced)) return;
    u.reduced.add_(reducing.sum);
    if (reducing.last) sum_over_replicas(u);
  }
  // Well or not: whoever waits for a call is told.
  static void end(comm::Handle& handle) {
    try {
      handle.wait();
    } catch (const std::exception&) {
    }
  }
  void sum_over_replicas(Unit& u) {
    if (replica_.size() == 1) return;
    u.summing = replica_.reduce_scatter(buffer_of(u.reduced), buffer_of(own_piece(u, u.reduced)));
  }
  void settle_all() {
    while (!reducing_.empty()) settle();
  }

  // Calls follow each other, so a part may be given on before it is there.
  void gather(std::int64_t unit) {
    auto& u = units_[to_size(unit)];
    if (u.gathered.defined()) return;
    if (std::ranges::count(updated_, unit) > 0) send_to_replicas_up_to(unit);
    u.gathered = at::empty({u.cut.total}, options(compute_));
    u.gathering = shard_.all_gather(buffer_of(u.part), buffer_of(u.gathered));
    advance();  // that of the next unit, behind this one
  }

  void send_to_replicas_up_to(std::int64_t last) {
    for (std::int64_t unit = -1; unit != last;) {
      unit = updated_.front();
      updated_.pop_front();
      auto& u = units_[to_size(unit)];
      if (replica_.size() > 1)
        u.ready = replica_.all_gather(buffer_of(own_piece(u, u.part)), buffer_of(u.part));
    }
  }

  // In common memory the ranks of a shard group take turns to read a unit for all of it, else each reads its
  // own part.  The first of a part's replicas reads and tells the others: files are asked for a byte once.
  void read(const model::UnitSource& source) {
    const std::int64_t first = common_ ? 0 : shard_.rank(), count = common_ ? shard_.size() : 1;
    for (std::int64_t turn = 0; turn < std::ssize(units_); turn += count) {
      const std::int64_t unit = common_ ? turn + shard_.rank() : turn;
      const bool is_one = unit < std::ssize(units_);
      at::Tensor values;
      world_.agree([&] {
        if (!is_one) return;
        const auto& cut = units_[to_size(unit)].cut;
        values = at::zeros({count * cut.part}, options(use_ == Use::frozen ? compute_ : master_type_));
        const auto begin = first * cut.part;
        const auto own = values.narrow(0, 0, std::clamp<std::int64_t>(cut.size - begin, 0, values.numel()));
        if (replica_.rank() == 0) source.read(to_size(unit), begin, own);
      });
      if (is_one) keep_in_replicas(units_[to_size(unit)], first, count, values);
    }
    world_.barrier();  // others look into common memory
  }

  void keep_in_replicas(Unit& u, std::int64_t first, std::int64_t count, const at::Tensor& values) {
    if (replica_.size() > 1) replica_.broadcast(buffer_of(values), 0).wait();
    for (std::int64_t i = 0; i < count; ++i) keep(u, first + i, values.narrow(0, i * u.cut.part, u.cut.part));
  }

  void keep(Unit& u, std::int64_t shard_rank, const at::Tensor& part) {
    (common_ ? u.whole.narrow(0, shard_rank * u.cut.part, u.cut.part) : u.part).copy_(part);
    if (use_ == Use::frozen || compute_ == master_type_) return;
    const auto master = common_ ? u.masters.narrow(0, shard_rank * u.cut.piece, u.cut.piece) : u.master;
    master.copy_(part.narrow(0, replicas_of_shard_[to_size(shard_rank)] * u.cut.piece, u.cut.piece));
  }

  architecture::Config config_;
  architecture::Layout layout_;
  Use use_;
  at::ScalarType compute_, master_type_;
  at::Device device_;
  comm::Group& world_;
  comm::Group& shard_;
  comm::Group& replica_;
  bool ahead_;
  std::vector<Unit> units_;
  std::vector<Place> places_;
  std::vector<std::int64_t> replicas_of_shard_;
  bool common_ = false, common_masters_ = false;
  std::vector<at::Tensor> common_gradients_;
  std::deque<Reducing> reducing_;
  std::deque<std::int64_t> updated_;  // units that replicas have not been sent yet
};

}  // namespace

std::unique_ptr<Parameters> sharded_parameters(const model::UnitSource& source, Use use,
                                               at::ScalarType compute, at::Device device,
                                               const Groups& groups) {
  return std::make_unique<ShardedParameters>(source, use, compute, device, groups);
}

}  // namespace retort::shard
